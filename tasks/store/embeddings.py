"""Vectors of sampled pictures: binary COPY in, one partial index per model.

Models differ in width and vectors of different models cannot be compared, so the column has no
fixed width and each (model revision, dimension) has an HNSW index of its own, made when it is
first seen. HNSW takes up to 2000 dimensions; up to 4000 the index holds half-precision copies
(the stored vectors stay float32); beyond that there is no index and search scans.
"""

import hashlib
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector.psycopg import register_vector
from psycopg import Connection as PsycopgConnection
from psycopg import sql
from sqlalchemy import Connection, Engine, text

from engines.contracts.base import Contract
from engines.contracts.vision import EmbeddedSample
from engines.errors import EngineError, ServiceUnavailableError
from tasks.store.fact_tables import embeddings
from tasks.store.ids import fact_id_of
from tasks.store.session import transaction

MAX_VECTOR_DIMENSIONS = 2000
MAX_HALFVEC_DIMENSIONS = 4000
INDEX_LOCK_TIMEOUT = "5s"

_COLUMNS = {
    "fact_id": "uuid",
    "video_id": "uuid",
    "stage_run_id": "uuid",
    "cache_key": "text",
    "ordinal": "int4",
    "sample_name": "text",
    "pts": "int8",
    "start_s": "float8",
    "model": "text",
    "model_revision": "text",
    "dimension": "int4",
    "vector": "vector",
}


class EmbeddingSpace(Contract):
    """What vectors must have in common to be compared."""

    model: str
    model_revision: str
    time_base_num: int
    time_base_den: int
    """Seconds per tick of ``EmbeddedSample.pts``."""


def copy_embeddings(
    connection: Connection,
    identity: tuple[UUID, UUID, str],
    samples: tuple[EmbeddedSample, ...],
    vectors: NDArray[np.float32],
    space: EmbeddingSpace,
) -> int:
    """Write one row per sampled picture; how many.

    Args:
        connection: inside the publishing transaction.
        identity: video id, producing stage run, cache key.
        samples: which picture row i belongs to.
        vectors: float32 [n, d].
        space: the model that made them.

    Raises:
        EngineError: the numbers of samples and vectors differ.
    """
    if vectors.ndim != 2 or len(vectors) != len(samples):  # noqa: PLR2004
        msg = f"{len(samples)} embedded samples, but vectors of shape {vectors.shape}"
        raise EngineError(msg)
    video_id, stage_run_id, cache_key = identity
    raw = _raw(connection)
    register_vector(raw)
    statement = sql.SQL("copy {} ({}) from stdin with (format binary)").format(
        sql.Identifier("core", embeddings.name), sql.SQL(", ").join(map(sql.Identifier, _COLUMNS))
    )
    with raw.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(list(_COLUMNS.values()))
        for i, (sample, vector) in enumerate(zip(samples, vectors, strict=True)):
            start_s = sample.pts * space.time_base_num / space.time_base_den
            copy.write_row(
                (
                    fact_id_of(video_id, cache_key, "embedding", i),
                    video_id,
                    stage_run_id,
                    cache_key,
                    i,
                    sample.sample_name,
                    sample.pts,
                    start_s,
                    space.model,
                    space.model_revision,
                    vectors.shape[1],
                    vector,
                )
            )
    return len(samples)


def ensure_index(engine: Engine, model_revision: str, dimension: int) -> bool:
    """Make the index of a vector space unless it is there; whether it is there now.

    In a short transaction of its own: made while publishing, it could deadlock with another
    publisher. When the table stays locked it is left for the next publication: search is then
    slower and as right.
    """
    kind = "vector" if dimension <= MAX_VECTOR_DIMENSIONS else "halfvec"
    if not 0 < dimension <= MAX_HALFVEC_DIMENSIONS:
        return False
    name = index_name(model_revision, dimension)
    create = sql.SQL(
        "create index if not exists {name} on core.embeddings"
        " using hnsw ((vector::{kind}({d})) {kind}_cosine_ops)"
        " where model_revision = {revision} and dimension = {d}"
    ).format(
        name=sql.Identifier(name),
        kind=sql.SQL(kind),
        d=sql.Literal(dimension),
        revision=sql.Literal(model_revision),
    )
    try:
        with transaction(engine) as connection:
            there = text("select to_regclass('core.' || quote_ident(:name)) is not null")
            if connection.execute(there, {"name": name}).scalar_one():
                return True
            connection.execute(text(f"set local lock_timeout = '{INDEX_LOCK_TIMEOUT}'"))
            # Two who see it missing at once: IF NOT EXISTS alone fails for the second.
            connection.execute(text("select pg_advisory_xact_lock(hashtext(:n))"), {"n": name})
            _raw(connection).execute(create)
    except ServiceUnavailableError:
        return False
    return True


def index_name(model_revision: str, dimension: int) -> str:
    """Name of the index of one vector space; begins as migrations expect it."""
    digest = hashlib.sha256(f"{model_revision}/{dimension}".encode()).hexdigest()[:16]
    return f"embeddings_hnsw_{digest}"


def _raw(connection: Connection) -> PsycopgConnection[tuple[object, ...]]:
    raw = connection.connection.driver_connection
    assert isinstance(raw, PsycopgConnection)
    return raw
