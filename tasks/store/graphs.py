"""The causal graph of one video or corpus, with what it takes to draw it."""

from uuid import UUID

from sqlalchemy import Engine, text

from engines.contracts.base import Contract
from tasks.store.session import transaction

MAX_ABSTENTIONS = 5


class GraphNode(Contract):
    """A type of event that is part of the graph."""

    type: str
    events: int
    """Occurrences in the video, or in the videos of the corpus that examples come from."""
    at_s: float | None
    """When the occurrence that is shown happens."""
    image_uri: str | None
    """The keyframe nearest to it."""


class GraphEdge(Contract):
    """A cause and its effect, with the numbers that a person asks for."""

    cause: str
    effect: str
    lag_s: float | None
    confidence: float | None
    cooccurrences: int
    q_value: float | None
    num_videos: int | None
    heterogeneity: float | None


class Abstention(Contract):
    """A pair for which there was too little evidence."""

    cause: str
    effect: str
    reason: str


class CausalGraph(Contract):
    """Types of event and what causes what; acyclic, as the miner makes it."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    abstentions: tuple[Abstention, ...]
    """The best supported ones."""
    num_abstentions: int


_EDGES = text(
    """
    select cause_type as cause, effect_type as effect, lag_s, confidence, cooccurrences, q_value,
        num_videos, heterogeneity
    from reel.causal_edges
    where video_id = :video_id and verdict = 'causal' and cause_event is null
    order by confidence desc nulls last, cause_type, effect_type
    """
)
_NODES = text(
    """
    with ends as (
        select e.fact_id, x.type, x.is_cause
        from reel.causal_edges e
        cross join lateral (
            values (e.cause_type, true), (e.effect_type, false)
        ) as x (type, is_cause)
        where e.video_id = :video_id and e.verdict = 'causal' and e.cause_event is null
    ),
    shown as (
        select distinct on (n.type)
            n.type, ev.start_s, ev.video_id
        from ends n
        left join reel.causal_examples x on x.edge_id = n.fact_id
        left join reel.events ev
            on ev.fact_id = case when n.is_cause then x.cause_event else x.effect_event end
        order by n.type, ev.fact_id is null, x.rank, n.fact_id
    )
    select
        s.type,
        (
            select count(*) from reel.events o where o.video_id = s.video_id and o.type = s.type
        ) as events,
        s.start_s as at_s,
        reel.picture_near(s.video_id, s.start_s) as image_uri
    from shown s
    order by s.type
    """
)
_ABSTENTIONS = text(
    """
    select cause_type as cause, effect_type as effect, reason
    from reel.causal_edges
    where video_id = :video_id and verdict = 'insufficient_evidence' and cause_event is null
    order by effective_n desc, p_value, cause_type, effect_type
    """
)


def causal_graph(engine: Engine, video_id: UUID) -> CausalGraph:
    """The published graph between types of event."""
    values = {"video_id": video_id}
    with transaction(engine) as connection:
        edges = connection.execute(_EDGES, values).all()
        nodes = connection.execute(_NODES, values).all()
        abstentions = connection.execute(_ABSTENTIONS, values).all()
    return CausalGraph(
        nodes=tuple(GraphNode(**row._mapping) for row in nodes),
        edges=tuple(GraphEdge(**row._mapping) for row in edges),
        abstentions=tuple(Abstention(**row._mapping) for row in abstentions[:MAX_ABSTENTIONS]),
        num_abstentions=len(abstentions),
    )
