"""Tables of the current facts, and what search needs.

Safe while the previous version of the code is running, because it adds tables that it does not
know. The way back drops the public schema: its views read these tables, and the code before has
none.

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def identity(table: str) -> list[sa.schema.SchemaItem]:
    """What every row about an asset has: its id, the asset, and who made it."""
    return [
        sa.Column("fact_id", sa.Uuid(), nullable=False),
        sa.Column("video_id", sa.Uuid(), nullable=False),
        sa.Column("stage_run_id", sa.Uuid(), nullable=False),
        sa.Column("cache_key", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.CheckConstraint("ordinal >= 0", name=op.f(f"{table}_ordinal_check")),
        sa.PrimaryKeyConstraint("fact_id", name=op.f(f"{table}_pkey")),
        sa.ForeignKeyConstraint(
            ["video_id"], ["core.videos.video_id"], name=op.f(f"{table}_video_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["stage_run_id"],
            ["core.stage_runs.stage_run_id"],
            name=op.f(f"{table}_stage_run_id_fkey"),
        ),
    ]


def seconds(ticks: str) -> sa.Computed:
    """Derived from ticks by the database."""
    return sa.Computed(
        f"((({ticks})::double precision * (time_base_num)::double precision)"
        " / (time_base_den)::double precision)",
        persisted=True,
    )


def span(table: str) -> list[sa.schema.SchemaItem]:
    """Where on the asset clock, and the marks of the fact."""
    return [
        sa.Column("start_pts", sa.BigInteger(), nullable=False),
        sa.Column("end_pts", sa.BigInteger(), nullable=False),
        sa.Column("time_base_num", sa.BigInteger(), nullable=False),
        sa.Column("time_base_den", sa.BigInteger(), nullable=False),
        sa.Column("start_s", sa.Double(), seconds("start_pts"), nullable=False),
        sa.Column("end_s", sa.Double(), seconds("end_pts"), nullable=False),
        sa.Column(
            "flags",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{}'::text[]"),
            nullable=False,
        ),
        sa.CheckConstraint("end_pts >= start_pts", name=op.f(f"{table}_span_check")),
        sa.CheckConstraint(
            "time_base_num > 0 and time_base_den > 0", name=op.f(f"{table}_time_base_check")
        ),
    ]


def search(*columns: str) -> sa.Column[object]:
    """Words as they stand and as English stems."""
    joined = " || ' ' || ".join(f"coalesce({name}, '')" for name in columns)
    part = f"left({joined}, 100000)"
    words = f"to_tsvector('simple'::regconfig, {part}) || to_tsvector('english'::regconfig, {part})"
    return sa.Column(
        "search", postgresql.TSVECTOR(), sa.Computed(words, persisted=True), nullable=False
    )


def upgrade() -> None:
    op.execute("create extension if not exists vector")
    op.execute("create extension if not exists pg_trgm")
    op.create_table(
        "actions",
        *identity("actions"),
        *span("actions"),
        sa.Column("granularity", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("keyframe_pts", postgresql.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("parent_fact_id", sa.Uuid(), nullable=True),
        sa.Column("person_track", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "granularity in ('macro', 'meso', 'micro')", name=op.f("actions_granularity_check")
        ),
        schema="core",
    )
    op.create_index(
        "actions_video_id_start_s_idx",
        "actions",
        ["video_id", "start_s"],
        unique=False,
        schema="core",
    )
    op.create_table(
        "answers",
        *identity("answers"),
        *span("answers"),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("answer", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("claim", sa.Text(), nullable=False),
        sa.Column("cites", postgresql.ARRAY(sa.Uuid()), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("prompt_hash", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("anchor_id", sa.Text(), nullable=True),
        search("question", "claim"),
        sa.CheckConstraint(
            "kind in ('why', 'next', 'what_if'"
            ", 'order', 'intent', 'consistent', 'summary', 'chapters')",
            name=op.f("answers_kind_check"),
        ),
        sa.CheckConstraint(
            "verdict in ('accepted', 'repaired', 'rejected', 'fallback')",
            name=op.f("answers_verdict_check"),
        ),
        schema="core",
    )
    op.create_index(
        "answers_claim_trgm_idx",
        "answers",
        ["claim"],
        unique=False,
        schema="core",
        postgresql_using="gin",
        postgresql_ops={"claim": "gin_trgm_ops"},
    )
    op.create_index(
        "answers_search_idx",
        "answers",
        ["search"],
        unique=False,
        schema="core",
        postgresql_using="gin",
    )
    op.create_index(
        "answers_video_id_start_s_idx",
        "answers",
        ["video_id", "start_s"],
        unique=False,
        schema="core",
    )
    op.create_table(
        "causal_edges",
        *identity("causal_edges"),
        *span("causal_edges"),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("cause_type", sa.Text(), nullable=False),
        sa.Column("effect_type", sa.Text(), nullable=False),
        sa.Column("cause_event", sa.Uuid(), nullable=True),
        sa.Column("effect_event", sa.Uuid(), nullable=True),
        sa.Column("lag_s", sa.Double(), nullable=True),
        sa.Column("cooccurrences", sa.BigInteger(), nullable=False),
        sa.Column("strength", sa.Double(), nullable=True),
        sa.Column("p_value", sa.Double(), nullable=True),
        sa.Column("q_value", sa.Double(), nullable=True),
        sa.Column("test", sa.Text(), nullable=False),
        sa.Column("effective_n", sa.Double(), nullable=False),
        sa.Column("counterfactual_delta", sa.Double(), nullable=True),
        sa.Column("delta_low", sa.Double(), nullable=True),
        sa.Column("delta_high", sa.Double(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.Column("placebo_rate", sa.Double(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.CheckConstraint("scope in ('video', 'corpus')", name=op.f("causal_edges_scope_check")),
        sa.CheckConstraint(
            "verdict in ('causal', 'not_causal', 'insufficient_evidence')",
            name=op.f("causal_edges_verdict_check"),
        ),
        schema="core",
    )
    op.create_index(
        "causal_edges_video_id_start_s_idx",
        "causal_edges",
        ["video_id", "start_s"],
        unique=False,
        schema="core",
    )
    op.create_table(
        "contradictions",
        *identity("contradictions"),
        *span("contradictions"),
        sa.Column("fact_a", sa.Uuid(), nullable=False),
        sa.Column("fact_b", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("resolution", sa.Text(), nullable=False),
        schema="core",
    )
    op.create_index(
        "contradictions_video_id_start_s_idx",
        "contradictions",
        ["video_id", "start_s"],
        unique=False,
        schema="core",
    )
    op.create_table(
        "coverage",
        *identity("coverage"),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("covered_s", sa.Double(), nullable=False),
        sa.Column("skipped_s", sa.Double(), nullable=False),
        sa.Column("trust", sa.Double(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column(
            "degraded",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{}'::text[]"),
            nullable=False,
        ),
        schema="core",
    )
    op.create_index("coverage_video_id_idx", "coverage", ["video_id"], unique=False, schema="core")
    op.create_table(
        "embeddings",
        *identity("embeddings"),
        sa.Column("sample_name", sa.Text(), nullable=False),
        sa.Column("pts", sa.BigInteger(), nullable=False),
        sa.Column("start_s", sa.Double(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("model_revision", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("vector", Vector(), nullable=False),
        sa.CheckConstraint(
            "vector_dims(vector) = dimension", name=op.f("embeddings_dimension_check")
        ),
        schema="core",
    )
    op.create_index(
        "embeddings_video_id_idx", "embeddings", ["video_id"], unique=False, schema="core"
    )
    op.create_table(
        "events",
        *identity("events"),
        *span("events"),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("evidence", postgresql.ARRAY(sa.Uuid()), nullable=False),
        search("type", "subject", "description"),
        sa.CheckConstraint(
            "source in ('shot', 'label', 'action', 'speech', 'sound', 'text', 'motion')",
            name=op.f("events_source_check"),
        ),
        schema="core",
    )
    op.create_index(
        "events_description_trgm_idx",
        "events",
        ["description"],
        unique=False,
        schema="core",
        postgresql_using="gin",
        postgresql_ops={"description": "gin_trgm_ops"},
    )
    op.create_index(
        "events_search_idx",
        "events",
        ["search"],
        unique=False,
        schema="core",
        postgresql_using="gin",
    )
    op.create_index(
        "events_video_id_start_s_idx",
        "events",
        ["video_id", "start_s"],
        unique=False,
        schema="core",
    )
    op.create_table(
        "keyframes",
        *identity("keyframes"),
        *span("keyframes"),
        sa.Column("shot_ordinal", sa.Integer(), nullable=False),
        sa.Column("frame", sa.BigInteger(), nullable=False),
        sa.Column("sample_name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("energy", sa.Double(), nullable=False),
        sa.Column("image_uri", sa.Text(), nullable=True),
        schema="core",
    )
    op.create_index(
        "keyframes_video_id_start_s_idx",
        "keyframes",
        ["video_id", "start_s"],
        unique=False,
        schema="core",
    )
    op.create_table(
        "labels",
        *identity("labels"),
        *span("labels"),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("vocabulary", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        search("label"),
        schema="core",
    )
    op.create_index(
        "labels_label_trgm_idx",
        "labels",
        ["label"],
        unique=False,
        schema="core",
        postgresql_using="gin",
        postgresql_ops={"label": "gin_trgm_ops"},
    )
    op.create_index(
        "labels_search_idx",
        "labels",
        ["search"],
        unique=False,
        schema="core",
        postgresql_using="gin",
    )
    op.create_index(
        "labels_video_id_start_s_idx",
        "labels",
        ["video_id", "start_s"],
        unique=False,
        schema="core",
    )
    op.create_table(
        "shots",
        *identity("shots"),
        *span("shots"),
        sa.Column("start_frame", sa.BigInteger(), nullable=False),
        sa.Column("end_frame", sa.BigInteger(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        schema="core",
    )
    op.create_index(
        "shots_video_id_start_s_idx", "shots", ["video_id", "start_s"], unique=False, schema="core"
    )
    op.create_table(
        "texts",
        *identity("texts"),
        *span("texts"),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("box_x", sa.Double(), nullable=False),
        sa.Column("box_y", sa.Double(), nullable=False),
        sa.Column("box_w", sa.Double(), nullable=False),
        sa.Column("box_h", sa.Double(), nullable=False),
        search("text"),
        sa.CheckConstraint("confidence between 0 and 1", name=op.f("texts_confidence_check")),
        schema="core",
    )
    op.create_index(
        "texts_search_idx", "texts", ["search"], unique=False, schema="core", postgresql_using="gin"
    )
    op.create_index(
        "texts_text_trgm_idx",
        "texts",
        ["text"],
        unique=False,
        schema="core",
        postgresql_using="gin",
        postgresql_ops={"text": "gin_trgm_ops"},
    )
    op.create_index(
        "texts_video_id_start_s_idx", "texts", ["video_id", "start_s"], unique=False, schema="core"
    )
    op.create_table(
        "utterances",
        *identity("utterances"),
        *span("utterances"),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("speaker", sa.Text(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.Column("trust", sa.Double(), nullable=False),
        sa.Column("no_speech_probability", sa.Double(), nullable=True),
        search("text"),
        sa.CheckConstraint("trust between 0 and 1", name=op.f("utterances_trust_check")),
        schema="core",
    )
    op.create_index(
        "utterances_search_idx",
        "utterances",
        ["search"],
        unique=False,
        schema="core",
        postgresql_using="gin",
    )
    op.create_index(
        "utterances_text_trgm_idx",
        "utterances",
        ["text"],
        unique=False,
        schema="core",
        postgresql_using="gin",
        postgresql_ops={"text": "gin_trgm_ops"},
    )
    op.create_index(
        "utterances_video_id_start_s_idx",
        "utterances",
        ["video_id", "start_s"],
        unique=False,
        schema="core",
    )
    op.create_table(
        "words",
        *identity("words"),
        *span("words"),
        sa.Column("utterance_id", sa.Uuid(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("speaker", sa.Text(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.Column("trust", sa.Double(), nullable=False),
        sa.Column("no_speech_probability", sa.Double(), nullable=True),
        schema="core",
    )
    op.create_index(
        "words_video_id_start_s_idx", "words", ["video_id", "start_s"], unique=False, schema="core"
    )


def downgrade() -> None:
    op.execute("drop schema if exists reel cascade")
    op.drop_table("words", schema="core")
    op.drop_table("utterances", schema="core")
    op.drop_table("texts", schema="core")
    op.drop_table("shots", schema="core")
    op.drop_table("labels", schema="core")
    op.drop_table("keyframes", schema="core")
    op.drop_table("events", schema="core")
    op.drop_table("embeddings", schema="core")
    op.drop_table("coverage", schema="core")
    op.drop_table("contradictions", schema="core")
    op.drop_table("causal_edges", schema="core")
    op.drop_table("answers", schema="core")
    op.drop_table("actions", schema="core")
