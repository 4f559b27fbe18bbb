"""Tables of the current facts, one row per fact, in the schema ``core``.

Only what is published now is here; earlier results stay reachable as documents among the
artifacts. Every fact names the stage run that first computed it, so that lineage starts there.
"""

from collections.abc import Sequence

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Computed,
    Double,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR
from sqlalchemy.schema import SchemaItem

from tasks.store.tables import EMPTY_ARRAY, metadata, one_of, stage_runs, videos

SEARCHED_CHARACTERS = 100_000
"""A tsvector may hold one megabyte: longer texts are searched by their beginning."""


def _identity() -> list[SchemaItem]:
    return [
        Column("fact_id", Uuid, primary_key=True),
        Column("video_id", Uuid, ForeignKey(videos.c.video_id), nullable=False),
        Column("stage_run_id", Uuid, ForeignKey(stage_runs.c.stage_run_id), nullable=False),
        Column("cache_key", Text, nullable=False),
        Column("ordinal", Integer, nullable=False),
        CheckConstraint("ordinal >= 0", name="ordinal"),
    ]


def _seconds(pts: str) -> Computed:
    # Double division is correctly rounded, so this equals the exact fraction's nearest double
    # as long as ticks times numerator stay below 2^53. Spelt as Postgres spells it back.
    return Computed(
        f"((({pts})::double precision * (time_base_num)::double precision)"
        " / (time_base_den)::double precision)",
        persisted=True,
    )


def _span() -> list[SchemaItem]:
    return [
        Column("start_pts", BigInteger, nullable=False),
        Column("end_pts", BigInteger, nullable=False),
        Column("time_base_num", BigInteger, nullable=False),
        Column("time_base_den", BigInteger, nullable=False),
        Column("start_s", Double, _seconds("start_pts"), nullable=False),
        Column("end_s", Double, _seconds("end_pts"), nullable=False),
        Column("flags", ARRAY(Text), nullable=False, server_default=EMPTY_ARRAY),
        CheckConstraint("end_pts >= start_pts", name="span"),
        CheckConstraint("time_base_num > 0 and time_base_den > 0", name="time_base"),
    ]


def _search(*columns: str) -> Column[object]:
    """Words as they stand and as English stems, so that either way of asking finds them."""
    joined = " || ' ' || ".join(f"coalesce({name}, '')" for name in columns)
    part = f"left({joined}, {SEARCHED_CHARACTERS})"
    return Column(
        "search",
        TSVECTOR,
        Computed(
            f"to_tsvector('simple'::regconfig, {part}) || "
            f"to_tsvector('english'::regconfig, {part})",
            persisted=True,
        ),
        nullable=False,
    )


def _fact_table(name: str, columns: Sequence[SchemaItem], *, trigrams: str | None = None) -> Table:
    """A table of facts; ``trigrams`` names the text that near misses may find."""
    table = Table(
        name,
        metadata,
        *_identity(),
        *_span(),
        *columns,
        Index(f"{name}_video_id_start_s_idx", "video_id", "start_s"),
    )
    if "search" in table.c:
        Index(f"{name}_search_idx", table.c.search, postgresql_using="gin")
    if trigrams is not None:
        Index(
            f"{name}_{trigrams}_trgm_idx",
            table.c[trigrams],
            postgresql_using="gin",
            postgresql_ops={trigrams: "gin_trgm_ops"},
        )
    return table


shots = _fact_table(
    "shots",
    [
        Column("start_frame", BigInteger, nullable=False),
        Column("end_frame", BigInteger, nullable=False),
        Column("method", Text, nullable=False),
        Column("score", Double, nullable=False),
    ],
)

keyframes = _fact_table(
    "keyframes",
    [
        Column("shot_ordinal", Integer, nullable=False),
        Column("frame", BigInteger, nullable=False),
        Column("sample_name", Text, nullable=False),
        Column("reason", Text, nullable=False),
        Column("energy", Double, nullable=False),
        Column("image_uri", Text),
    ],
)

labels = _fact_table(
    "labels",
    [
        Column("label", Text, nullable=False),
        Column("score", Double, nullable=False),
        Column("vocabulary", Text, nullable=False),
        Column("model", Text, nullable=False),
        # Region and sureness of it, from models that relate text to places in the picture.
        *(Column(name, Double) for name in ("box_x", "box_y", "box_w", "box_h")),
        Column("attention_entropy", Double),
        _search("label"),
    ],
    trigrams="label",
)

utterances = _fact_table(
    "utterances",
    [
        Column("text", Text, nullable=False),
        Column("language", Text),
        Column("speaker", Text),
        Column("confidence", Double),
        Column("trust", Double, nullable=False),
        Column("no_speech_probability", Double),
        CheckConstraint("trust between 0 and 1", name="trust"),
        _search("text"),
    ],
    trigrams="text",
)

words = _fact_table(
    "words",
    [
        Column("utterance_id", Uuid, nullable=False),
        Column("text", Text, nullable=False),
        Column("language", Text),
        Column("speaker", Text),
        Column("confidence", Double),
        Column("trust", Double, nullable=False),
        Column("no_speech_probability", Double),
    ],
)

texts = _fact_table(
    "texts",
    [
        Column("text", Text, nullable=False),
        Column("confidence", Double, nullable=False),
        Column("box_x", Double, nullable=False),
        Column("box_y", Double, nullable=False),
        Column("box_w", Double, nullable=False),
        Column("box_h", Double, nullable=False),
        CheckConstraint("confidence between 0 and 1", name="confidence"),
        _search("text"),
    ],
    trigrams="text",
)

actions = _fact_table(
    "actions",
    [
        Column("granularity", Text, nullable=False),
        Column("label", Text, nullable=False),
        Column("score", Double, nullable=False),
        Column("keyframe_pts", ARRAY(BigInteger), nullable=False),
        Column("parent_fact_id", Uuid),
        Column("person_track", Text),
        one_of("granularity", ("macro", "meso", "micro")),
    ],
)

events = _fact_table(
    "events",
    [
        Column("type", Text, nullable=False),
        Column("subject", Text),
        Column("description", Text, nullable=False),
        Column("source", Text, nullable=False),
        Column("evidence", ARRAY(Uuid), nullable=False),
        one_of("source", ("shot", "label", "action", "speech", "sound", "text", "motion")),
        _search("type", "subject", "description"),
    ],
    trigrams="description",
)

causal_edges = _fact_table(
    "causal_edges",
    [
        Column("scope", Text, nullable=False),
        Column("cause_type", Text, nullable=False),
        Column("effect_type", Text, nullable=False),
        Column("cause_event", Uuid),
        Column("effect_event", Uuid),
        Column("lag_s", Double),
        Column("cooccurrences", BigInteger, nullable=False),
        Column("strength", Double),
        Column("p_value", Double),
        Column("q_value", Double),
        Column("test", Text, nullable=False),
        Column("effective_n", Double, nullable=False),
        Column("counterfactual_delta", Double),
        Column("delta_low", Double),
        Column("delta_high", Double),
        Column("confidence", Double),
        Column("placebo_rate", Double),
        Column("verdict", Text, nullable=False),
        Column("reason", Text, nullable=False),
        # Of an edge over many videos: see reel.causal_examples.
        Column("num_videos", Integer),
        Column("heterogeneity", Double),
        Column("examples", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
        one_of("scope", ("video", "corpus")),
        one_of("verdict", ("causal", "not_causal", "insufficient_evidence")),
    ],
)

answers = _fact_table(
    "answers",
    [
        Column("task", Text, nullable=False),
        Column("kind", Text, nullable=False),
        Column("question", Text, nullable=False),
        Column("answer", JSONB, nullable=False),
        Column("claim", Text, nullable=False),
        Column("cites", ARRAY(Uuid), nullable=False),
        Column("verdict", Text, nullable=False),
        Column("engine", Text, nullable=False),
        Column("model", Text, nullable=False),
        Column("prompt", Text, nullable=False),
        Column("prompt_hash", Text, nullable=False),
        Column("input_tokens", BigInteger, nullable=False),
        Column("output_tokens", BigInteger, nullable=False),
        Column("anchor_id", Text),
        one_of(
            "kind",
            ("why", "next", "what_if", "order", "intent", "consistent", "summary", "chapters"),
        ),
        one_of("verdict", ("accepted", "repaired", "rejected", "fallback")),
        _search("question", "claim"),
    ],
    trigrams="claim",
)

contradictions = _fact_table(
    "contradictions",
    [
        Column("fact_a", Uuid, nullable=False),
        Column("fact_b", Uuid, nullable=False),
        Column("kind", Text, nullable=False),
        Column("resolution", Text, nullable=False),
    ],
)

coverage = Table(
    "coverage",
    metadata,
    *_identity(),
    Column("stage", Text, nullable=False),
    Column("covered_s", Double, nullable=False),
    Column("skipped_s", Double, nullable=False),
    Column("trust", Double),
    Column("reason", Text),
    Column("degraded", ARRAY(Text), nullable=False, server_default=EMPTY_ARRAY),
    Index("coverage_video_id_idx", "video_id"),
)

embeddings = Table(
    "embeddings",
    metadata,
    *_identity(),
    Column("sample_name", Text, nullable=False),
    Column("pts", BigInteger, nullable=False),
    Column("start_s", Double, nullable=False),
    Column("model", Text, nullable=False),
    Column("model_revision", Text, nullable=False),
    Column("dimension", Integer, nullable=False),
    # No fixed width: models differ. Each (model revision, dimension) has a partial index.
    Column("vector", Vector(), nullable=False),
    CheckConstraint("vector_dims(vector) = dimension", name="dimension"),
    Index("embeddings_video_id_idx", "video_id"),
)
