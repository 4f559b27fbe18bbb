-- Where one fact comes from, as rows from the fact down to the bytes.
--
-- The way down goes through the stage results that this asset's current run rests on, so that two
-- assets whose stages happen to have made identical documents are not mixed up. depth counts the
-- stages between; within a stage come the stage run that first computed it, its run, code, model,
-- parameters, prompts and artifacts.
create or replace function reel.why(fact uuid)
returns table (
    step integer,
    depth integer,
    kind text,
    id text,
    name text,
    hash text,
    detail jsonb
)
language sql
stable
security definer
set search_path = pg_catalog, public, pg_temp
as $$
    with recursive asked as (
        select f.*, v.bucket, v.key, v.sha256, v.version_id, v.current_run_id
        from reel.facts f
        join core.videos v using (video_id)
        where f.fact_id = fact
    ),
    own as (
        select p.cache_key
        from core.publications p
        join asked a using (video_id)
        union
        select s.cache_key
        from core.stage_runs s
        join asked a on s.run_id = a.current_run_id
        where s.cache_key is not null
        union
        -- A corpus rests on what its videos have published.
        select p.cache_key
        from asked a
        join core.videos v
            on a.bucket like 'corpus:%'
            and a.bucket in ('corpus:*', 'corpus:' || v.bucket)
            and starts_with(v.key, left(a.key, -1))
        join core.publications p on p.video_id = v.video_id
    ),
    walk as (
        select a.cache_key, 0 as depth
        from asked a
        union
        select made.cache_key, w.depth + 1
        from walk w
        join core.stage_inputs i on i.cache_key = w.cache_key
        cross join lateral (
            select r.cache_key
            from (
                select o.cache_key from core.stage_outputs o where o.sha256 = i.sha256
                union
                select d.cache_key from core.stage_results d where d.document_sha256 = i.sha256
            ) r
            order by r.cache_key in (select own.cache_key from own) desc, r.cache_key
            limit 1
        ) made
        where w.depth < 32 and made.cache_key <> w.cache_key
    ),
    stages as (
        -- A stage reached along several ways stands at its greatest depth, below all its users.
        select r.*, w.depth
        from (select cache_key, max(depth) as depth from walk group by cache_key) w
        join core.stage_results r using (cache_key)
    ),
    used as (
        select distinct i.sha256 from core.stage_inputs i join stages s using (cache_key)
    ),
    lines as (
        select 0 as depth, '' as part, 0 as rank, 'fact' as kind, a.fact_id::text as id, a.kind as name,
            null::text as hash,
            jsonb_build_object('summary', a.summary, 'start_s', a.start_s, 'end_s', a.end_s,
                'video_id', a.video_id, 'ordinal', a.ordinal) as detail
        from asked a
        union all
        select 0, '', 1, 'evidence', e.fact_id::text, e.kind, null,
            jsonb_build_object('summary', e.summary, 'start_s', e.start_s, 'end_s', e.end_s)
        from reel.facts e
        where e.fact_id in (
            select unnest(evidence) from core.events where fact_id = fact
            union
            select unnest(cites) from core.answers where fact_id = fact
            union
            select unnest(array[cause_event, effect_event]) from core.causal_edges
            where fact_id = fact
            union
            select unnest(array[x.cause_event, x.effect_event]) from reel.causal_examples x
            where x.edge_id = fact
            union
            select unnest(array[fact_a, fact_b]) from core.contradictions where fact_id = fact
        )
        union all
        select 0, '', 2, 'prompt', an.prompt, an.task, an.prompt_hash,
            jsonb_build_object('engine', an.engine, 'model', an.model, 'verdict', an.verdict)
        from core.answers an
        where an.fact_id = fact
        union all
        select s.depth, s.cache_key, 10, 'stage_run', sr.stage_run_id::text, s.stage, s.cache_key,
            jsonb_build_object('status', sr.status, 'device', sr.device, 'pool', sr.pool,
                'started_at', sr.started_at, 'seconds', sr.seconds, 'degraded', sr.degraded)
        from stages s
        join core.stage_runs sr using (stage_run_id)
        union all
        select s.depth, s.cache_key, 12, 'code', s.stage, 'code of ' || s.stage,
            coalesce(s.recipe ->> 'code_version', sr.code_version), null
        from stages s
        join core.stage_runs sr using (stage_run_id)
        where coalesce(s.recipe ->> 'code_version', sr.code_version) is not null
        union all
        select s.depth, s.cache_key, 13, 'model', coalesce(s.recipe ->> 'model', sr.model, ''),
            coalesce(s.recipe ->> 'engine', sr.engine),
            coalesce(s.recipe ->> 'model_revision', sr.model_revision), null
        from stages s
        join core.stage_runs sr using (stage_run_id)
        where coalesce(s.recipe ->> 'model_revision', sr.model_revision) is not null
        union all
        select s.depth, s.cache_key, 14, 'params', s.stage, 'parameters of ' || s.stage,
            encode(sha256(convert_to((s.recipe -> 'params')::text, 'UTF8')), 'hex'),
            s.recipe -> 'params'
        from stages s
        where jsonb_typeof(s.recipe -> 'params') = 'object'
        union all
        select s.depth, s.cache_key, 15, 'prompt', p.key, s.stage, p.value, null
        from stages s
        cross join lateral jsonb_each_text(
            case jsonb_typeof(s.recipe -> 'prompts')
                when 'object' then s.recipe -> 'prompts' else '{}'
            end
        ) p
        union all
        select s.depth, s.cache_key, 16, 'artifact', ar.uri, o.name, o.sha256,
            jsonb_build_object('bytes', ar.size_bytes, 'kind', ar.kind)
        from stages s
        join (
            select cache_key, name, sha256 from core.stage_outputs
            union all
            select cache_key, 'document', document_sha256 from core.stage_results
        ) o using (cache_key)
        join core.artifacts ar on ar.sha256 = o.sha256
        where s.depth = 0 and o.name = 'document' or o.sha256 in (select used.sha256 from used)
        union all
        select b.depth, b.cache_key, 11, 'run', r.run_id::text, r.status, r.recipe_hash,
            jsonb_build_object('code_version', r.code_version, 'started_at', r.started_at,
                'prefect_flow_run_id', r.prefect_flow_run_id,
                'published_these_facts', r.run_id = a.current_run_id)
        from asked a
        cross join lateral (
            select distinct on (run_id) run_id, depth, cache_key
            from (
                select sr.run_id, s.depth, s.cache_key
                from stages s
                join core.stage_runs sr using (stage_run_id)
                union all
                select a.current_run_id, 0, a.cache_key
            ) every_run
            order by run_id, depth, cache_key
        ) b
        join core.runs r on r.run_id = b.run_id
        union all
        select 1000, '', 20, 'object', format('s3://%s/%s', a.bucket, a.key),
            coalesce(o.version_id, ''), o.etag,
            jsonb_build_object('bucket', a.bucket, 'key', a.key, 'version_id', o.version_id,
                'size_bytes', o.size_bytes, 'modified_at', o.modified_at)
        from asked a
        join core.object_versions o
            on o.bucket = a.bucket and o.key = a.key and o.sha256 = a.sha256
            and o.version_id is not distinct from a.version_id
        union all
        select 1000, '', 20, 'object', format('s3://%s/%s', v.bucket, v.key),
            coalesce(v.version_id, ''), v.sha256,
            jsonb_build_object('bucket', v.bucket, 'key', v.key, 'version_id', v.version_id,
                'size_bytes', c.size_bytes, 'modified_at', v.observed_modified_at)
        from asked a
        join core.videos v
            on a.bucket like 'corpus:%'
            and a.bucket in ('corpus:*', 'corpus:' || v.bucket)
            and starts_with(v.key, left(a.key, -1))
        join core.contents c on c.sha256 = v.sha256
        where v.sha256 in (select used.sha256 from used)
        union all
        select 1000, '', 21, 'content', c.sha256, 'bytes of the video', c.sha256,
            jsonb_build_object('size_bytes', c.size_bytes, 'first_seen_at', c.first_seen_at)
        from core.contents c
        where c.sha256 in (select a.sha256 from asked a union select used.sha256 from used)
    ),
    placed as (
        select l.*, (select coalesce(max(s.depth), 0) + 1 from stages s) as bottom
        from lines l
    )
    select
        (row_number() over (order by p.depth, p.part, p.rank, p.id, p.hash))::integer,
        least(p.depth, p.bottom),
        p.kind, p.id, p.name, p.hash, p.detail
    from placed p
    order by 1
$$;
