-- Chains of causal edges, from a root cause (nothing found to cause it) to a last effect.
--
-- A node is an event where the edge joins two events, else a type of event. Each chain is one way
-- through the graph; step 0 is its root, depth its number of links, confidence that of the link
-- which leads to the step (null for the root), chain_confidence the product up to here. Bounds on
-- what is listed, against graphs with more ways than anyone can read: the four most confident
-- links out of a node, and eight links.
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
        l.effect as last
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
    select p.video_id, p.scope, p.nodes || l.effect, p.edges || l.fact_id, l.effect
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
        s.step = 1 as is_root
    from chains c
    cross join lateral generate_subscripts(c.nodes, 1) as s (step)
)
select
    s.chain_id,
    s.step,
    s.depth,
    case when s.is_root then l.cause_type else l.effect_type end as event,
    case when s.is_root then null else l.confidence end as confidence,
    s.video_id,
    case when s.is_root then null else l.fact_id end as fact_id,
    l.stage_run_id,
    case when s.is_root then l.cause_event else l.effect_event end as event_id,
    ev.description,
    coalesce(ev.start_s, case when s.is_root then l.start_s else l.end_s end) as start_s,
    coalesce(ev.end_s, l.end_s) as end_s,
    case
        when s.is_root then 1.0
        else exp(sum(case when s.is_root then 0 else ln(nullif(l.confidence, 0)) end) over (
            partition by s.chain_id order by s.step))
    end as chain_confidence,
    case when s.is_root then null else l.lag_s end as lag_s,
    case when s.is_root then null else l.cooccurrences end as cooccurrences,
    case when s.is_root then null else l.strength end as strength,
    case when s.is_root then null else l.p_value end as p_value,
    case when s.is_root then null else l.q_value end as q_value,
    case when s.is_root then null else l.effective_n end as effective_n,
    case when s.is_root then null else l.counterfactual_delta end as counterfactual_delta,
    case when s.is_root then null else l.reason end as reason,
    l.scope
from steps s
join links l on l.fact_id = s.nearest_edge
left join core.events ev
    on ev.fact_id = case when s.is_root then l.cause_event else l.effect_event end;
