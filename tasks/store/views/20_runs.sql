-- What happened: every run and stage run, also those that failed or were superseded.

-- A run's engines, models and devices are those of its stages, joined; its cost is their sum.
create or replace view reel.runs as
select
    r.run_id,
    r.video_id,
    r.sha256,
    r.status,
    r.recipe_hash,
    r.code_version,
    s.engine,
    s.model_revision,
    s.device,
    r.started_at,
    r.finished_at,
    coalesce(s.cached, false) as cached,
    r.degraded,
    r.prefect_flow_run_id,
    r.error_code,
    extract(epoch from r.finished_at - r.started_at)::double precision as seconds,
    s.cpu_seconds,
    s.peak_rss_bytes,
    r.error_message,
    r.error_retryable,
    r.published_at,
    coalesce(s.computed_stages, 0) as computed_stages,
    coalesce(s.cached_stages, 0) as cached_stages,
    v.current_run_id is not distinct from r.run_id as current
from core.runs r
join core.videos v using (video_id)
left join lateral (
    select
        string_agg(distinct engine, ', ' order by engine) as engine,
        string_agg(distinct model_revision, ', ' order by model_revision) as model_revision,
        string_agg(distinct device, ', ' order by device) as device,
        bool_and(cached) filter (where status in ('done', 'cached')) as cached,
        sum(cpu_seconds) as cpu_seconds,
        max(peak_rss_bytes) as peak_rss_bytes,
        count(*) filter (where status = 'done') as computed_stages,
        count(*) filter (where status = 'cached') as cached_stages
    from core.stage_runs
    where stage_runs.run_id = r.run_id
) s on true;

-- recipe_hash is the run's; cache_key names content and recipe of this stage alone.
create or replace view reel.stage_runs as
select
    s.stage_run_id,
    s.run_id,
    r.video_id,
    s.stage,
    s.status,
    r.recipe_hash,
    coalesce(s.code_version, r.code_version) as code_version,
    s.engine,
    s.model_revision,
    s.device,
    s.started_at,
    s.finished_at,
    s.cached,
    s.degraded,
    r.prefect_flow_run_id,
    s.error_code,
    s.seconds,
    s.cpu_seconds,
    s.peak_rss_bytes,
    s.error_message,
    s.cache_key,
    s.produced_by,
    s.model,
    s.pool,
    s.attempt
from core.stage_runs s
join core.runs r using (run_id);

create or replace view reel.artifacts as
select sha256 as content_hash, uri, size_bytes as bytes, kind, created_at
from core.artifacts;

-- One row per way from an input to an output of a stage; the output named document holds its
-- facts. The first input of all is the content: it has no row in reel.artifacts.
create or replace view reel.lineage as
select
    i.sha256 as input,
    o.sha256 as output,
    r.stage_run_id as stage_run,
    r.stage_run_id,
    r.stage,
    i.name as input_name,
    o.name as output_name,
    r.cache_key
from core.stage_results r
join core.stage_inputs i using (cache_key)
join (
    select cache_key, name, sha256 from core.stage_outputs
    union all
    select cache_key, 'document', document_sha256 from core.stage_results
) o using (cache_key);

create or replace view reel.event_inbox as
select
    inbox_id, bucket, key, etag, version_id, sequencer, received_at, state, reason,
    event, size_bytes, deliveries, changed_at, run_id
from core.event_inbox;
