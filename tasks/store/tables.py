"""Base tables of the schema ``core``: assets, runs, stage results, leases and the inbox.

Sizes, times in ticks and counters are bigint: a file passes 2^31 bytes and a clock of 90 kHz
passes it after seven hours. Long text is never in a unique index. The facts themselves are in
``fact_tables``.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

SCHEMA = "core"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "pk": "%(table_name)s_pkey",
    },
)

EMPTY_ARRAY = text("'{}'::text[]")
MAX_KEY_BYTES = 1024
"""What S3 allows; it also keeps the keys inside what a btree entry may hold."""

RUN_STATES = ("running", "done", "partial", "failed", "refused", "superseded", "crashed")
STAGE_RUN_STATES = ("running", "done", "cached", "skipped", "failed")
INBOX_STATES = ("queued", "running", "done", "ignored", "dead")


def timestamp(name: str, *, nullable: bool = True, now: bool = False) -> Column[object]:
    """A timestamptz column, set by the database's own clock where ``now``."""
    default = func.clock_timestamp() if now else None
    return Column(name, DateTime(timezone=True), nullable=nullable, server_default=default)


def one_of(column: str, values: tuple[str, ...], name: str | None = None) -> CheckConstraint:
    """CHECK that a text column holds one of the values (or NULL where it may)."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} in ({listed})", name=name or column)


def sha256_check(column: str) -> CheckConstraint:
    """CHECK that a column holds a SHA-256 in lower-case hex."""
    return CheckConstraint(f"{column} ~ '^[0-9a-f]{{64}}$'", name=column)


contents = Table(
    "contents",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("size_bytes", BigInteger, nullable=False),
    timestamp("first_seen_at", nullable=False, now=True),
    sha256_check("sha256"),
    CheckConstraint("size_bytes >= 0", name="size_bytes"),
)

videos = Table(
    "videos",
    metadata,
    Column("video_id", Uuid, primary_key=True),
    Column("bucket", Text, nullable=False),
    Column("key", Text, nullable=False),
    timestamp("first_seen_at", nullable=False, now=True),
    # What the store was last seen to hold under the key.
    Column("observed_sha256", Text, ForeignKey(contents.c.sha256)),
    Column("observed_etag", Text),
    Column("observed_version_id", Text),
    timestamp("observed_modified_at"),
    timestamp("gone_at"),
    # What the published facts are about.
    Column("current_run_id", Uuid),
    timestamp("published_at"),
    Column("sha256", Text, ForeignKey(contents.c.sha256)),
    Column("version_id", Text),
    Column("container", Text),
    Column("duration_s", Float),
    Column("start_s", Float),
    Column("width", Integer),
    Column("height", Integer),
    Column("frame_count", BigInteger),
    Column("video_codec", Text),
    Column("audio_codec", Text),
    Column("verdict", Text),
    Column("decoded_fraction", Float),
    Column("problems", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    UniqueConstraint("bucket", "key"),
    one_of("verdict", ("complete", "partial", "refused")),
    CheckConstraint(f"octet_length(key) between 1 and {MAX_KEY_BYTES}", name="key_length"),
    CheckConstraint("decoded_fraction between 0 and 1", name="decoded_fraction"),
)

object_versions = Table(
    "object_versions",
    metadata,
    Column("object_version_id", BigInteger, Identity(), primary_key=True),
    Column("bucket", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("etag", Text, nullable=False),
    Column("version_id", Text),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", Text, ForeignKey(contents.c.sha256), nullable=False),
    timestamp("modified_at"),
    timestamp("first_seen_at", nullable=False, now=True),
)
Index(
    "object_versions_identity_key",
    object_versions.c.bucket,
    object_versions.c.key,
    text("coalesce(version_id, '')"),
    object_versions.c.etag,
    object_versions.c.size_bytes,
    unique=True,
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("video_id", Uuid, ForeignKey(videos.c.video_id), nullable=False),
    Column("sha256", Text, ForeignKey(contents.c.sha256)),
    Column("version_id", Text),
    Column("status", Text, nullable=False),
    Column("recipe_hash", Text),
    Column("code_version", Text),
    Column("prefect_flow_run_id", Uuid),
    timestamp("started_at", nullable=False, now=True),
    timestamp("finished_at"),
    timestamp("published_at"),
    Column("error_code", Text),
    Column("error_message", Text),
    Column("error_retryable", Boolean),
    Column("degraded", ARRAY(Text), nullable=False, server_default=EMPTY_ARRAY),
    one_of("status", RUN_STATES),
    Index("runs_video_id_started_at_idx", "video_id", "started_at"),
    Index("runs_prefect_flow_run_id_idx", "prefect_flow_run_id"),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("uri", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    timestamp("created_at", nullable=False, now=True),
    sha256_check("sha256"),
    CheckConstraint("size_bytes >= 0", name="size_bytes"),
)

stage_runs = Table(
    "stage_runs",
    metadata,
    Column("stage_run_id", Uuid, primary_key=True),
    Column("run_id", Uuid, ForeignKey(runs.c.run_id), nullable=False),
    Column("stage", Text, nullable=False),
    Column("cache_key", Text),
    Column("status", Text, nullable=False),
    Column("cached", Boolean, nullable=False, server_default=text("false")),
    # The stage run that first computed the result: itself when computed here.
    Column("produced_by", Uuid, ForeignKey("core.stage_runs.stage_run_id")),
    Column("code_version", Text),
    Column("engine", Text),
    Column("model", Text),
    Column("model_revision", Text),
    Column("device", Text),
    Column("pool", Text),
    Column("attempt", Integer, nullable=False, server_default=text("1")),
    timestamp("started_at", nullable=False, now=True),
    timestamp("finished_at"),
    Column("seconds", Float),
    Column("cpu_seconds", Float),
    Column("peak_rss_bytes", BigInteger),
    Column("degraded", ARRAY(Text), nullable=False, server_default=EMPTY_ARRAY),
    Column("error_code", Text),
    Column("error_message", Text),
    one_of("status", STAGE_RUN_STATES),
    CheckConstraint("attempt >= 1", name="attempt"),
    Index("stage_runs_run_id_idx", "run_id"),
    Index("stage_runs_cache_key_idx", "cache_key"),
)

stage_results = Table(
    "stage_results",
    metadata,
    Column("cache_key", Text, primary_key=True),
    Column("stage", Text, nullable=False),
    Column("stage_run_id", Uuid, ForeignKey(stage_runs.c.stage_run_id), nullable=False),
    Column("recipe", JSONB, nullable=False),
    Column("document_sha256", Text, ForeignKey(artifacts.c.sha256), nullable=False),
    # False when a passing fault shaped it: it is published, but found by no later run.
    Column("reusable", Boolean, nullable=False, server_default=text("true")),
    timestamp("created_at", nullable=False, now=True),
)

stage_inputs = Table(
    "stage_inputs",
    metadata,
    Column(
        "cache_key",
        Text,
        ForeignKey(stage_results.c.cache_key, ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("name", Text, primary_key=True),
    # Not a foreign key: the first input of all is the content itself, which is no artifact.
    Column("sha256", Text, nullable=False),
    sha256_check("sha256"),
    Index("stage_inputs_sha256_idx", "sha256"),
)

stage_outputs = Table(
    "stage_outputs",
    metadata,
    Column(
        "cache_key",
        Text,
        ForeignKey(stage_results.c.cache_key, ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("name", Text, primary_key=True),
    Column("sha256", Text, ForeignKey(artifacts.c.sha256), nullable=False),
    Index("stage_outputs_sha256_idx", "sha256"),
)

leases = Table(
    "leases",
    metadata,
    Column("cache_key", Text, primary_key=True),
    Column("owner", Uuid, nullable=False),
    Column("fence", BigInteger, nullable=False),
    timestamp("expires_at", nullable=False),
    CheckConstraint("fence >= 1", name="fence"),
)

publications = Table(
    "publications",
    metadata,
    Column("video_id", Uuid, ForeignKey(videos.c.video_id), primary_key=True),
    Column("stage", Text, primary_key=True),
    Column("cache_key", Text, ForeignKey(stage_results.c.cache_key), nullable=False),
    Column("stage_run_id", Uuid, ForeignKey(stage_runs.c.stage_run_id), nullable=False),
    # Cache keys of the stages whose facts this stage's facts cite: their ids depend on them.
    Column("cites", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    timestamp("published_at", nullable=False, now=True),
    Index("publications_cache_key_idx", "cache_key"),
)

event_inbox = Table(
    "event_inbox",
    metadata,
    Column("inbox_id", BigInteger, Identity(), primary_key=True),
    Column("bucket", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("etag", Text, nullable=False),
    Column("version_id", Text),
    Column("sequencer", Text),
    Column("size_bytes", BigInteger),
    Column("event", Text, nullable=False),
    timestamp("received_at", nullable=False, now=True),
    timestamp("changed_at", nullable=False, now=True),
    # How often the same version was announced; everything after the first is a duplicate.
    Column("deliveries", BigInteger, nullable=False, server_default=text("1")),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("run_id", Uuid),
    one_of("state", INBOX_STATES),
    CheckConstraint(f"octet_length(key) between 1 and {MAX_KEY_BYTES}", name="key_length"),
    Index("event_inbox_state_received_at_idx", "state", "received_at"),
)
Index(
    "event_inbox_identity_key",
    event_inbox.c.bucket,
    event_inbox.c.key,
    text("coalesce(version_id, '')"),
    event_inbox.c.etag,
    event_inbox.c.event,
    unique=True,
)
