-- Chains of causal edges, from a root cause (nothing found to cause it) to a last effect, each step
-- with its evidence; and where there was too little to say, the abstention with its reason.
--
-- A node is an event where the edge joins two events, else a type of event. Each chain is one way
-- through the graph; step 0 is its root, depth its number of links, confidence that of the link
-- which leads to the step (null for the root), chain_confidence the product up to here. Bounds on
-- what is listed, against graphs with more ways than anyone can read: the four most confident
-- links out of a node, and eight links.
--
-- root, effect and path name the chain's first, last and all event types. Evidence of a step:
-- evidence (the event itself, or occurrences that show the link), at_s and evidence_videos (when
-- and in which videos they are), pictures (the keyframes nearest to them) and words (what is said
-- within a second of them). A row with depth 0 is an abstention: for event no cause could be
-- named, verdict is insufficient_evidence and reason says which number was missing.
create or replace view reel.causal_chains as
with recursive links as (
    select
        e.*,
        coalesce(cause_event::text, cause_type) as cause,
        coalesce(effect_event::text, effect_type) as effect,
        row_number() over (
            partition by video_id, scope, coalesce(cause_event::text, cause_type)
            order by confidence desc nulls last, fact_id
        ) as strength_rank
    from core.causal_edges e
    where verdict = 'causal'
),
paths as (
    select
        l.video_id,
        l.scope,
        array[l.cause, l.effect] as nodes,
        array[l.fact_id] as edges,
        l.effect as last,
        array[l.cause_type, l.effect_type] as types
    from links l
    where strength_rank <= 4
        and l.cause <> l.effect
        and not exists (
            select from links before
            where before.video_id = l.video_id
                and before.scope = l.scope
                and before.effect = l.cause
        )
    union all
    select
        p.video_id, p.scope, p.nodes || l.effect, p.edges || l.fact_id, l.effect,
        p.types || l.effect_type
    from paths p
    join links l on l.video_id = p.video_id and l.scope = p.scope and l.cause = p.last
    where l.strength_rank <= 4
        and cardinality(p.edges) < 8
        and l.effect <> all (p.nodes)
),
chains as (
    -- Only whole ways: one that could go on is the beginning of another.
    select md5(array_to_string(edges, ' '))::uuid as chain_id, *
    from paths p
    where cardinality(edges) = 8
        or not exists (
            select from links l
            where l.video_id = p.video_id
                and l.scope = p.scope
                and l.cause = p.last
                and l.strength_rank <= 4
                and l.effect <> all (p.nodes)
        )
),
steps as (
    select
        c.chain_id,
        c.video_id,
        s.step - 1 as step,
        cardinality(c.edges) as depth,
        c.edges[greatest(s.step - 1, 1)] as nearest_edge,
        s.step = 1 as is_root,
        c.types
    from chains c
    cross join lateral generate_subscripts(c.nodes, 1) as s (step)
),
told as (
    select
        s.chain_id,
        s.step,
        s.depth,
        s.is_root,
        s.types,
        case when s.is_root then l.cause_type else l.effect_type end as event,
        s.video_id,
        l.fact_id,
        l.scope,
        l.verdict,
        l.stage_run_id,
        case when s.is_root then l.cause_event else l.effect_event end as event_id,
        l.start_s,
        l.end_s,
        case
            when s.is_root then 1.0
            else exp(sum(case when s.is_root then 0 else ln(nullif(l.confidence, 0)) end) over (
                partition by s.chain_id order by s.step))
        end as chain_confidence
    from steps s
    join links l on l.fact_id = s.nearest_edge
    union all
    select
        md5('abstention ' || a.fact_id)::uuid, 0, 0, false, array[a.effect_type], a.effect_type,
        a.video_id, a.fact_id, a.scope, a.verdict, a.stage_run_id, null::uuid, null::double precision,
        null::double precision, null::double precision
    from (
        select distinct on (e.video_id, e.scope, e.effect_type) e.*
        from core.causal_edges e
        where e.verdict = 'insufficient_evidence'
            and e.cause_event is null
            and not exists (
                select from core.causal_edges known
                where known.video_id = e.video_id
                    and known.scope = e.scope
                    and known.verdict = 'causal'
                    and known.cause_event is null
                    and e.effect_type in (known.cause_type, known.effect_type)
            )
        order by e.video_id, e.scope, e.effect_type, e.effective_n desc, e.p_value, e.fact_id
    ) a
)
select
    t.chain_id,
    t.step,
    t.depth,
    t.event,
    l.confidence,
    t.video_id,
    l.fact_id,
    t.stage_run_id,
    t.event_id,
    ev.description,
    coalesce(ev.start_s, case when t.is_root then t.start_s else t.end_s end) as start_s,
    coalesce(ev.end_s, t.end_s) as end_s,
    t.chain_confidence,
    l.lag_s,
    l.cooccurrences,
    l.strength,
    l.p_value,
    l.q_value,
    l.effective_n,
    l.counterfactual_delta,
    l.reason,
    t.scope,
    t.verdict,
    t.types[1] as root,
    t.types[cardinality(t.types)] as effect,
    t.types as path,
    l.test,
    l.delta_low,
    l.delta_high,
    l.placebo_rate,
    l.num_videos,
    l.heterogeneity,
    shown.evidence,
    shown.evidence_videos,
    shown.at_s,
    shown.pictures,
    shown.words
from told t
-- A root has no link that leads to it.
left join core.causal_edges l on l.fact_id = t.fact_id and not t.is_root
left join core.events ev on ev.fact_id = t.event_id
left join lateral (
    select
        array_agg(o.event order by o.rank) as evidence,
        array_agg(e.video_id order by o.rank) as evidence_videos,
        array_agg(e.start_s order by o.rank) as at_s,
        array_agg(near.picture order by o.rank) filter (
            where near.picture is not null) as pictures,
        array_agg(said.text order by o.rank) filter (where said.text is not null) as words
    from (
        select t.event_id as event, 0::bigint as rank
        where t.event_id is not null
        union all
        select case when t.is_root then x.cause_event else x.effect_event end, x.rank
        from reel.causal_examples x
        where t.event_id is null and x.edge_id = t.fact_id and x.rank <= 3
    ) o
    join core.events e on e.fact_id = o.event
    cross join lateral reel.picture_near(e.video_id, e.start_s) as near (picture)
    left join lateral (
        select string_agg(u.text, ' ' order by u.start_s) as text
        from core.utterances u
        where u.video_id = e.video_id
            and u.start_s < e.end_s + 1
            and u.end_s > e.start_s - 1
    ) said on true
) shown on true;
