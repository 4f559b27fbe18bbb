-- Every fact of whatever kind in a few words: what evidence and cites point to.
create or replace view reel.facts as
select fact_id, video_id, stage_run_id, 'shot' as kind, method as summary,
    start_s, end_s, cache_key, ordinal
from core.shots
union all
select fact_id, video_id, stage_run_id, 'keyframe' as kind, reason as summary,
    start_s, end_s, cache_key, ordinal
from core.keyframes
union all
select fact_id, video_id, stage_run_id, case vocabulary when 'sound' then 'sound' else 'label' end as kind, label as summary,
    start_s, end_s, cache_key, ordinal
from core.labels
union all
select fact_id, video_id, stage_run_id, 'utterance' as kind, text as summary,
    start_s, end_s, cache_key, ordinal
from core.utterances
union all
select fact_id, video_id, stage_run_id, 'word' as kind, text as summary,
    start_s, end_s, cache_key, ordinal
from core.words
union all
select fact_id, video_id, stage_run_id, 'text' as kind, text as summary,
    start_s, end_s, cache_key, ordinal
from core.texts
union all
select fact_id, video_id, stage_run_id, 'action' as kind, label as summary,
    start_s, end_s, cache_key, ordinal
from core.actions
union all
select fact_id, video_id, stage_run_id, 'event' as kind, description as summary,
    start_s, end_s, cache_key, ordinal
from core.events
union all
select fact_id, video_id, stage_run_id, 'edge' as kind, cause_type || ' -> ' || effect_type || ': ' || verdict as summary,
    start_s, end_s, cache_key, ordinal
from core.causal_edges
union all
select fact_id, video_id, stage_run_id, 'answer' as kind, claim as summary,
    start_s, end_s, cache_key, ordinal
from core.answers
union all
select fact_id, video_id, stage_run_id, 'contradiction' as kind, kind || ': ' || resolution as summary,
    start_s, end_s, cache_key, ordinal
from core.contradictions
union all
select fact_id, video_id, stage_run_id, 'coverage', stage || coalesce(': ' || reason, ''),
    null, null, cache_key, ordinal
from core.coverage
union all
select fact_id, video_id, stage_run_id, 'embedding', sample_name,
    start_s, start_s, cache_key, ordinal
from core.embeddings;
