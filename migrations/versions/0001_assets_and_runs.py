"""Assets, runs, stage results, leases and the inbox.

Safe while the previous version of the code is running, because there is none.

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "artifacts",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("sha256 ~ '^[0-9a-f]{64}$'", name=op.f("artifacts_sha256_check")),
        sa.CheckConstraint("size_bytes >= 0", name=op.f("artifacts_size_bytes_check")),
        sa.PrimaryKeyConstraint("sha256", name=op.f("artifacts_pkey")),
        schema="core",
    )
    op.create_table(
        "contents",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column(
            "first_seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("sha256 ~ '^[0-9a-f]{64}$'", name=op.f("contents_sha256_check")),
        sa.CheckConstraint("size_bytes >= 0", name=op.f("contents_size_bytes_check")),
        sa.PrimaryKeyConstraint("sha256", name=op.f("contents_pkey")),
        schema="core",
    )
    op.create_table(
        "event_inbox",
        sa.Column("inbox_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("bucket", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("etag", sa.Text(), nullable=False),
        sa.Column("version_id", sa.Text(), nullable=True),
        sa.Column("sequencer", sa.Text(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column(
            "received_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "changed_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("deliveries", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.CheckConstraint(
            "state in ('queued', 'running', 'done', 'ignored', 'dead')",
            name=op.f("event_inbox_state_check"),
        ),
        sa.CheckConstraint(
            "octet_length(key) between 1 and 1024", name=op.f("event_inbox_key_length_check")
        ),
        sa.PrimaryKeyConstraint("inbox_id", name=op.f("event_inbox_pkey")),
        schema="core",
    )
    op.create_index(
        "event_inbox_identity_key",
        "event_inbox",
        ["bucket", "key", sa.literal_column("coalesce(version_id, '')"), "etag", "event"],
        unique=True,
        schema="core",
    )
    op.create_index(
        "event_inbox_state_received_at_idx",
        "event_inbox",
        ["state", "received_at"],
        unique=False,
        schema="core",
    )
    op.create_table(
        "leases",
        sa.Column("cache_key", sa.Text(), nullable=False),
        sa.Column("owner", sa.Uuid(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("fence >= 1", name=op.f("leases_fence_check")),
        sa.PrimaryKeyConstraint("cache_key", name=op.f("leases_pkey")),
        schema="core",
    )
    op.create_table(
        "object_versions",
        sa.Column("object_version_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("bucket", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("etag", sa.Text(), nullable=False),
        sa.Column("version_id", sa.Text(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("modified_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "first_seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["sha256"], ["core.contents.sha256"], name=op.f("object_versions_sha256_fkey")
        ),
        sa.PrimaryKeyConstraint("object_version_id", name=op.f("object_versions_pkey")),
        schema="core",
    )
    op.create_index(
        "object_versions_identity_key",
        "object_versions",
        ["bucket", "key", sa.literal_column("coalesce(version_id, '')"), "etag", "size_bytes"],
        unique=True,
        schema="core",
    )
    op.create_table(
        "videos",
        sa.Column("video_id", sa.Uuid(), nullable=False),
        sa.Column("bucket", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column(
            "first_seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("observed_sha256", sa.Text(), nullable=True),
        sa.Column("observed_etag", sa.Text(), nullable=True),
        sa.Column("observed_version_id", sa.Text(), nullable=True),
        sa.Column("observed_modified_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("gone_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("current_run_id", sa.Uuid(), nullable=True),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("version_id", sa.Text(), nullable=True),
        sa.Column("container", sa.Text(), nullable=True),
        sa.Column("duration_s", sa.Float(), nullable=True),
        sa.Column("start_s", sa.Float(), nullable=True),
        sa.Column("width", sa.Integer(), nullable=True),
        sa.Column("height", sa.Integer(), nullable=True),
        sa.Column("frame_count", sa.BigInteger(), nullable=True),
        sa.Column("video_codec", sa.Text(), nullable=True),
        sa.Column("audio_codec", sa.Text(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("decoded_fraction", sa.Float(), nullable=True),
        sa.Column(
            "problems",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "verdict in ('complete', 'partial', 'refused')", name=op.f("videos_verdict_check")
        ),
        sa.CheckConstraint(
            "decoded_fraction between 0 and 1", name=op.f("videos_decoded_fraction_check")
        ),
        sa.CheckConstraint(
            "octet_length(key) between 1 and 1024", name=op.f("videos_key_length_check")
        ),
        sa.ForeignKeyConstraint(
            ["observed_sha256"], ["core.contents.sha256"], name=op.f("videos_observed_sha256_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["sha256"], ["core.contents.sha256"], name=op.f("videos_sha256_fkey")
        ),
        sa.PrimaryKeyConstraint("video_id", name=op.f("videos_pkey")),
        sa.UniqueConstraint("bucket", "key", name=op.f("videos_bucket_key_key")),
        schema="core",
    )
    op.create_table(
        "runs",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("video_id", sa.Uuid(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("version_id", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("recipe_hash", sa.Text(), nullable=True),
        sa.Column("code_version", sa.Text(), nullable=True),
        sa.Column("prefect_flow_run_id", sa.Uuid(), nullable=True),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("error_retryable", sa.Boolean(), nullable=True),
        sa.Column(
            "degraded",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{}'::text[]"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "status in ('running', 'done', 'partial', 'failed',"
            " 'refused', 'superseded', 'crashed')",
            name=op.f("runs_status_check"),
        ),
        sa.ForeignKeyConstraint(
            ["sha256"], ["core.contents.sha256"], name=op.f("runs_sha256_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["video_id"], ["core.videos.video_id"], name=op.f("runs_video_id_fkey")
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("runs_pkey")),
        schema="core",
    )
    op.create_index(
        "runs_prefect_flow_run_id_idx", "runs", ["prefect_flow_run_id"], unique=False, schema="core"
    )
    op.create_index(
        "runs_video_id_started_at_idx",
        "runs",
        ["video_id", "started_at"],
        unique=False,
        schema="core",
    )
    op.create_table(
        "stage_runs",
        sa.Column("stage_run_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("cache_key", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("cached", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("produced_by", sa.Uuid(), nullable=True),
        sa.Column("code_version", sa.Text(), nullable=True),
        sa.Column("engine", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("model_revision", sa.Text(), nullable=True),
        sa.Column("device", sa.Text(), nullable=True),
        sa.Column("pool", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("cpu_seconds", sa.Float(), nullable=True),
        sa.Column("peak_rss_bytes", sa.BigInteger(), nullable=True),
        sa.Column(
            "degraded",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{}'::text[]"),
            nullable=False,
        ),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "status in ('running', 'done', 'cached', 'skipped', 'failed')",
            name=op.f("stage_runs_status_check"),
        ),
        sa.CheckConstraint("attempt >= 1", name=op.f("stage_runs_attempt_check")),
        sa.ForeignKeyConstraint(
            ["produced_by"],
            ["core.stage_runs.stage_run_id"],
            name=op.f("stage_runs_produced_by_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["core.runs.run_id"], name=op.f("stage_runs_run_id_fkey")
        ),
        sa.PrimaryKeyConstraint("stage_run_id", name=op.f("stage_runs_pkey")),
        schema="core",
    )
    op.create_index(
        "stage_runs_cache_key_idx", "stage_runs", ["cache_key"], unique=False, schema="core"
    )
    op.create_index("stage_runs_run_id_idx", "stage_runs", ["run_id"], unique=False, schema="core")
    op.create_table(
        "stage_results",
        sa.Column("cache_key", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("stage_run_id", sa.Uuid(), nullable=False),
        sa.Column("recipe", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("document_sha256", sa.Text(), nullable=False),
        sa.Column("reusable", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["document_sha256"],
            ["core.artifacts.sha256"],
            name=op.f("stage_results_document_sha256_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["stage_run_id"],
            ["core.stage_runs.stage_run_id"],
            name=op.f("stage_results_stage_run_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("cache_key", name=op.f("stage_results_pkey")),
        schema="core",
    )
    op.create_table(
        "publications",
        sa.Column("video_id", sa.Uuid(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("cache_key", sa.Text(), nullable=False),
        sa.Column("stage_run_id", sa.Uuid(), nullable=False),
        sa.Column(
            "cites",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column(
            "published_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["cache_key"],
            ["core.stage_results.cache_key"],
            name=op.f("publications_cache_key_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["stage_run_id"],
            ["core.stage_runs.stage_run_id"],
            name=op.f("publications_stage_run_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["video_id"], ["core.videos.video_id"], name=op.f("publications_video_id_fkey")
        ),
        sa.PrimaryKeyConstraint("video_id", "stage", name=op.f("publications_pkey")),
        schema="core",
    )
    op.create_index(
        "publications_cache_key_idx", "publications", ["cache_key"], unique=False, schema="core"
    )
    op.create_table(
        "stage_inputs",
        sa.Column("cache_key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.CheckConstraint("sha256 ~ '^[0-9a-f]{64}$'", name=op.f("stage_inputs_sha256_check")),
        sa.ForeignKeyConstraint(
            ["cache_key"],
            ["core.stage_results.cache_key"],
            name=op.f("stage_inputs_cache_key_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("cache_key", "name", name=op.f("stage_inputs_pkey")),
        schema="core",
    )
    op.create_index(
        "stage_inputs_sha256_idx", "stage_inputs", ["sha256"], unique=False, schema="core"
    )
    op.create_table(
        "stage_outputs",
        sa.Column("cache_key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["cache_key"],
            ["core.stage_results.cache_key"],
            name=op.f("stage_outputs_cache_key_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["sha256"], ["core.artifacts.sha256"], name=op.f("stage_outputs_sha256_fkey")
        ),
        sa.PrimaryKeyConstraint("cache_key", "name", name=op.f("stage_outputs_pkey")),
        schema="core",
    )
    op.create_index(
        "stage_outputs_sha256_idx", "stage_outputs", ["sha256"], unique=False, schema="core"
    )


def downgrade() -> None:
    op.drop_table("stage_outputs", schema="core")
    op.drop_table("stage_inputs", schema="core")
    op.drop_table("publications", schema="core")
    op.drop_table("stage_results", schema="core")
    op.drop_table("stage_runs", schema="core")
    op.drop_table("runs", schema="core")
    op.drop_table("videos", schema="core")
    op.drop_table("object_versions", schema="core")
    op.drop_table("leases", schema="core")
    op.drop_table("event_inbox", schema="core")
    op.drop_table("contents", schema="core")
    op.drop_table("artifacts", schema="core")
