"""The facts of one video, read for people: timeline, chains, answers, coverage, counts."""

from typing import TypeVar
from uuid import UUID

from sqlalchemy import Engine, text

from engines.contracts.base import Contract
from tasks.store.session import transaction

R = TypeVar("R", bound=Contract)


class FactRow(Contract):
    """One fact of whatever kind in a few words."""

    fact_id: UUID
    kind: str
    summary: str
    start_s: float
    end_s: float


class ChainStep(Contract):
    """One step of a causal chain; step 0 is its root."""

    chain_id: UUID
    step: int
    depth: int
    event: str
    description: str | None
    start_s: float | None
    end_s: float | None
    confidence: float | None
    lag_s: float | None
    cooccurrences: int | None
    p_value: float | None
    q_value: float | None
    counterfactual_delta: float | None
    verdict: str | None
    reason: str | None


class EdgeRow(Contract):
    """A tested pair, also one that was rejected or for which there was too little."""

    fact_id: UUID
    cause_type: str
    effect_type: str
    verdict: str
    reason: str
    lag_s: float | None
    cooccurrences: int
    q_value: float | None
    confidence: float | None
    effective_n: float
    start_s: float
    end_s: float


class AnswerRow(Contract):
    """A claim and what it rests on."""

    fact_id: UUID
    kind: str
    question: str
    claim: str
    verdict: str
    engine: str
    cites: tuple[UUID, ...]
    start_s: float
    end_s: float


class CoverageRow(Contract):
    """How much a stage looked at."""

    stage: str
    covered_s: float
    skipped_s: float
    trust: float | None
    reason: str | None
    degraded: tuple[str, ...]


class KeyframeRow(Contract):
    """A picture that stands for what is around it."""

    fact_id: UUID
    shot_ordinal: int
    frame: int
    start_s: float
    reason: str
    energy: float
    image_uri: str | None


class Counts(Contract):
    """Rows of each view for one video."""

    shots: int
    keyframes: int
    utterances: int
    texts: int
    labels: int
    actions: int
    events: int
    causal_edges: int
    """Tested pairs of every verdict."""
    answers: int


def counts(engine: Engine, video_id: UUID) -> Counts:
    """How many facts of each kind are published for a video."""
    columns = ", ".join(
        # Names of our own fields, never input.
        f"(select count(*) from reel.{name} where video_id = :video_id) as {name}"  # noqa: S608
        for name in Counts.model_fields
    )
    with transaction(engine) as connection:
        row = connection.execute(text(f"select {columns}"), {"video_id": video_id}).one()
    return Counts(**row._mapping)


def timeline(engine: Engine, video_id: UUID) -> list[FactRow]:
    """All facts with a place in time, by start.

    Words, vectors and single strokes of a limb are left out: too many to be read by a person.
    """
    kinds = "('shot', 'keyframe', 'label', 'sound', 'utterance', 'text', 'action', 'event')"
    strokes = "select from reel.actions a where a.fact_id = f.fact_id and a.granularity = 'micro'"
    return _read(
        engine,
        FactRow,
        f"reel.facts f where kind in {kinds} and not exists ({strokes})",
        video_id,
        "start_s, kind",
    )


def keyframes(engine: Engine, video_id: UUID) -> list[KeyframeRow]:
    """Keyframes in order of time."""
    return _read(engine, KeyframeRow, "reel.keyframes where true", video_id, "start_s")


def chains(engine: Engine, video_id: UUID) -> list[ChainStep]:
    """Causal chains, step by step."""
    return _read(
        engine, ChainStep, "reel.causal_chains where true", video_id, "depth desc, chain_id, step"
    )


def edges(engine: Engine, video_id: UUID) -> list[EdgeRow]:
    """Tested pairs: those found causal first, the most certain first."""
    return _read(
        engine,
        EdgeRow,
        "reel.causal_edges where true",
        video_id,
        "verdict <> 'causal', confidence desc nulls last, cause_type, effect_type, ordinal",
    )


def answers(engine: Engine, video_id: UUID) -> list[AnswerRow]:
    """Answers in the order in which they were given."""
    return _read(engine, AnswerRow, "reel.answers where true", video_id, "ordinal")


def coverage(engine: Engine, video_id: UUID) -> list[CoverageRow]:
    """Coverage of every stage, by name."""
    return _read(engine, CoverageRow, "reel.coverage where true", video_id, "stage")


def _read(engine: Engine, model: type[R], source: str, video_id: UUID, order: str) -> list[R]:
    columns = ", ".join(model.model_fields)
    statement = text(
        f"select {columns} from {source} and video_id = :video_id order by {order}"  # noqa: S608
    )
    with transaction(engine) as connection:
        rows = connection.execute(statement, {"video_id": video_id}).all()
    return [model(**row._mapping) for row in rows]
