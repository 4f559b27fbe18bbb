"""Corpora: what is mined over the videos below a prefix, published as facts of an asset.

A corpus is an asset like a video, so that runs, leases, publications and lineage hold for it as
they are. Its bucket has a name that no bucket can have, which keeps it out of ``reel.videos``.
"""

from collections.abc import Sequence
from uuid import UUID

from pydantic import JsonValue
from sqlalchemy import Engine, text

from engines.contracts.base import Contract
from tasks.store.session import transaction

CORPUS_BUCKET = "corpus:"
"""What the bucket of a corpus begins with; S3 allows no colon in a bucket's name."""
EVERY_BUCKET = "*"
STAGE = "mine_corpus"
"""The stage that a corpus is published under."""


class CorpusName(Contract):
    """Which videos a corpus is made of."""

    bucket: str = EVERY_BUCKET
    prefix: str = ""

    @property
    def asset_bucket(self) -> str:
        """Bucket of its asset."""
        return f"{CORPUS_BUCKET}{self.bucket}"

    @property
    def asset_key(self) -> str:
        """Key of its asset."""
        return f"{self.prefix}*"


class MinedCorpus(Contract):
    """A corpus with published edges."""

    name: CorpusName
    video_id: UUID
    """Of its asset."""
    params: dict[str, JsonValue]
    """Of the miner, when what is published was mined."""
    latest_run_id: UUID
    """The run over it that began last, whatever became of it."""


class Timeline(Contract):
    """The current, published timeline of one video."""

    video_id: UUID
    cache_key: str
    """Of its events stage: fact ids come from it."""
    document_sha256: str


def is_corpus(bucket: str) -> bool:
    """Whether an asset's bucket says that it is a corpus."""
    return bucket.startswith(CORPUS_BUCKET)


def timelines(engine: Engine, corpus: CorpusName) -> list[Timeline]:
    """Published timelines of a corpus, one for each content.

    The same bytes under two keys are one video's evidence; so are files whose timelines are the
    same to the last byte. The asset with the smallest id stands for them.
    """
    statement = text(
        """
        with found as (
            select distinct on (coalesce(v.sha256, v.video_id::text))
                p.video_id, p.cache_key, r.document_sha256
            from core.publications p
            join core.stage_results r using (cache_key)
            join core.videos v using (video_id)
            where p.stage = 'events'
                and (:bucket = '*' or v.bucket = :bucket)
                and starts_with(v.key, :prefix)
            order by coalesce(v.sha256, v.video_id::text), p.published_at desc, p.video_id
        )
        select distinct on (document_sha256) video_id, cache_key, document_sha256
        from found
        order by document_sha256, video_id
        """
    )
    with transaction(engine) as connection:
        rows = connection.execute(
            statement, {"bucket": corpus.bucket, "prefix": corpus.prefix}
        ).all()
    return [Timeline(**row._mapping) for row in rows]


def holding(engine: Engine, bucket: str, key: str) -> list[MinedCorpus]:
    """The corpora that were mined before and that an object belongs to by its name."""
    statement = text(
        """
        select v.video_id, v.bucket as asset_bucket, v.key as asset_key,
            s.recipe -> 'params' as params,
            (select r.run_id from core.runs r where r.video_id = v.video_id
                order by r.started_at desc limit 1) as latest_run_id
        from core.publications p
        join core.stage_results s using (cache_key)
        join core.videos v using (video_id)
        where p.stage = :stage
            and v.bucket in (:every, :own)
            and starts_with(:key, left(v.key, -1))
        order by v.video_id
        """
    )
    names = {"every": CORPUS_BUCKET + EVERY_BUCKET, "own": CORPUS_BUCKET + bucket}
    with transaction(engine) as connection:
        rows = connection.execute(statement, names | {"key": key, "stage": STAGE}).all()
    return [
        MinedCorpus(
            name=CorpusName(
                bucket=row.asset_bucket.removeprefix(CORPUS_BUCKET), prefix=row.asset_key[:-1]
            ),
            video_id=row.video_id,
            params=row.params,
            latest_run_id=row.latest_run_id,
        )
        for row in rows
    ]


def known_blobs(engine: Engine, cache_keys: Sequence[str], name: str) -> dict[str, str]:
    """Blob ``name`` of those results that are stored already: cache key -> SHA-256.

    One question for a whole corpus, where a look-up each would write a row each.
    """
    statement = text(
        "select cache_key, o.sha256 from core.stage_results r"
        " join core.stage_outputs o using (cache_key)"
        " where r.reusable and o.name = :name and cache_key = any(:cache_keys)"
    )
    with transaction(engine) as connection:
        rows = connection.execute(statement, {"name": name, "cache_keys": list(cache_keys)}).all()
    return {row.cache_key: row.sha256 for row in rows}
