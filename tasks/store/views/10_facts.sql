-- The current, published facts: one view per kind, each with the fact's id, asset, and the stage
-- run that first computed it.

create or replace view reel.videos as
select
    video_id,
    c.sha256,
    bucket,
    key,
    case when published_at is null then observed_version_id else version_id end as version_id,
    c.size_bytes,
    container,
    duration_s,
    width,
    height,
    frame_count,
    video_codec,
    audio_codec,
    verdict,
    decoded_fraction,
    v.first_seen_at,
    published_at,
    start_s as origin_s,
    problems,
    current_run_id as run_id,
    gone_at
from core.videos v
left join core.contents c on c.sha256 = coalesce(v.sha256, v.observed_sha256)
where (published_at is not null or verdict = 'refused')
    -- A corpus is an asset too, but no video: see reel.corpora.
    and bucket not like 'corpus:%';

-- Videos below a prefix that were mined together; bucket is * for all buckets. The edges are in
-- reel.causal_edges under the same video_id, with scope corpus.
create or replace view reel.corpora as
select
    v.video_id,
    substr(v.bucket, 8) as bucket,
    left(v.key, -1) as prefix,
    (
        select count(*) from core.stage_inputs i where i.cache_key = p.cache_key
    ) as num_videos,
    c.covered_s,
    c.skipped_s,
    v.published_at,
    v.current_run_id as run_id,
    p.stage_run_id
from core.videos v
join core.publications p on p.video_id = v.video_id and p.stage = 'mine_corpus'
left join core.coverage c on c.video_id = v.video_id and c.stage = 'mine_corpus'
where v.bucket like 'corpus:%';

create or replace view reel.shots as
select
    fact_id, video_id, stage_run_id,
    ordinal, start_frame, end_frame, method, score,
    start_s, end_s, start_pts, end_pts, time_base_num, time_base_den, flags
from core.shots;

create or replace view reel.keyframes as
select
    fact_id, video_id, stage_run_id,
    shot_ordinal, frame, start_pts as pts, reason, energy, image_uri,
    start_s, end_s, start_pts, end_pts, time_base_num, time_base_den, flags, ordinal
from core.keyframes;

-- Address of the keyframe nearest to a moment; null where the video has none.
create or replace function reel.picture_near(video uuid, at_s double precision)
returns text
language sql
stable
as $$
    select k.image_uri
    from reel.keyframes k
    where k.video_id = video and k.image_uri is not null
    order by abs(k.start_s - at_s), k.ordinal
    limit 1
$$;

create or replace view reel.labels as
select
    fact_id, video_id, stage_run_id,
    start_s, end_s, label, score, vocabulary, model,
    start_pts, end_pts, time_base_num, time_base_den, flags, ordinal,
    case
        when box_x is not null
            then jsonb_build_object('x', box_x, 'y', box_y, 'w', box_w, 'h', box_h)
    end as box,
    attention_entropy
from core.labels;

create or replace view reel.utterances as
select
    fact_id, video_id, stage_run_id,
    text, language, speaker, confidence, trust, no_speech_probability,
    start_s, end_s, start_pts, end_pts, time_base_num, time_base_den, flags, ordinal
from core.utterances;

-- Language, trust and no_speech_probability are those of the utterance that holds the word.
create or replace view reel.words as
select
    fact_id, video_id, stage_run_id,
    text, language, speaker, confidence, trust, no_speech_probability,
    start_s, end_s, start_pts, end_pts, time_base_num, time_base_den, flags, ordinal,
    utterance_id
from core.words;

create or replace view reel.texts as
select
    fact_id, video_id, stage_run_id,
    text, confidence,
    jsonb_build_object('x', box_x, 'y', box_y, 'w', box_w, 'h', box_h) as box,
    start_s, end_s, start_pts, end_pts, time_base_num, time_base_den, flags, ordinal,
    box_x, box_y, box_w, box_h
from core.texts;

create or replace view reel.actions as
select
    fact_id, video_id, stage_run_id,
    granularity, label, score, keyframe_pts, parent_fact_id, person_track,
    start_s, end_s, start_pts, end_pts, time_base_num, time_base_den, flags, ordinal
from core.actions;

create or replace view reel.events as
select
    fact_id, video_id, stage_run_id,
    type, subject, description, source, evidence,
    start_s, end_s, start_pts, end_pts, time_base_num, time_base_den, flags, ordinal
from core.events;

create or replace view reel.causal_edges as
select
    fact_id, video_id, stage_run_id,
    scope, cause_type, effect_type, cause_event, effect_event, lag_s, cooccurrences, strength,
    p_value, q_value, test, effective_n, counterfactual_delta, delta_low, delta_high, confidence,
    placebo_rate, verdict,
    start_s, end_s, start_pts, end_pts, time_base_num, time_base_den, flags, ordinal,
    reason, num_videos, heterogeneity, examples
from core.causal_edges;

-- Pairs of occurrences that show an edge between types: in one video those whose attention is
-- clear, in a corpus a few of different videos. An event that was replaced since is left out.
create or replace view reel.causal_examples as
select
    e.fact_id as edge_id,
    e.scope,
    x.video_id,
    x.cause_event,
    x.effect_event,
    x.lag_s,
    ce.start_s as cause_start_s,
    ee.start_s as effect_start_s,
    ce.description as cause_description,
    ee.description as effect_description,
    x.rank
from core.causal_edges e
cross join lateral (
    select
        i.video_id, i.cause_event, i.effect_event, i.lag_s,
        row_number() over (order by i.confidence desc nulls last, i.ordinal) as rank
    from core.causal_edges i
    where e.scope = 'video'
        and i.video_id = e.video_id
        and i.scope = 'video'
        and i.cause_type = e.cause_type
        and i.effect_type = e.effect_type
        and i.cause_event is not null
    union all
    select
        (j.item ->> 'video_id')::uuid,
        (j.item ->> 'cause_event')::uuid,
        (j.item ->> 'effect_event')::uuid,
        (j.item ->> 'lag_s')::double precision,
        j.rank
    from jsonb_array_elements(e.examples) with ordinality as j (item, rank)
) x
join core.events ce on ce.fact_id = x.cause_event
join core.events ee on ee.fact_id = x.effect_event
where e.cause_event is null;

create or replace view reel.answers as
select
    fact_id, video_id, stage_run_id,
    task, kind, question, answer, claim, cites, verdict, engine, model, prompt, prompt_hash,
    input_tokens, output_tokens, anchor_id,
    start_s, end_s, start_pts, end_pts, time_base_num, time_base_den, flags, ordinal
from core.answers;

create or replace view reel.contradictions as
select
    fact_id, video_id, stage_run_id,
    fact_a, fact_b, kind, resolution,
    start_s, end_s, start_pts, end_pts, time_base_num, time_base_den, flags, ordinal
from core.contradictions;

create or replace view reel.coverage as
select
    fact_id, video_id, stage_run_id,
    stage, covered_s, skipped_s, trust, reason, degraded
from core.coverage;

create or replace view reel.embeddings as
select
    fact_id, video_id, stage_run_id,
    sample_name, pts, start_s, model, model_revision, dimension, vector, ordinal
from core.embeddings;
