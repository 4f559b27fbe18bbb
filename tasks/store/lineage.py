"""Lineage read back: why a fact is as it is."""

from uuid import UUID

from pydantic import JsonValue
from sqlalchemy import Engine, text

from engines.contracts.base import Contract
from engines.errors import UsageError
from tasks.store.session import transaction


class LineageStep(Contract):
    """One row of ``reel.why``."""

    step: int
    depth: int
    """Stages between the fact and this."""
    kind: str
    """fact, evidence, prompt, stage_run, run, code, model, params, artifact, object, content."""
    id: str
    name: str | None
    hash: str | None
    detail: JsonValue


def why(engine: Engine, fact_id: UUID) -> list[LineageStep]:
    """The lineage of a published fact, from the fact down to the bytes of the video.

    Raises:
        UsageError: no published fact has this id.
    """
    statement = text("select * from reel.why(:fact_id) order by step")
    with transaction(engine) as connection:
        rows = connection.execute(statement, {"fact_id": fact_id}).all()
    if not rows:
        msg = f"no published fact {fact_id}"
        raise UsageError(msg)
    return [LineageStep(**row._mapping) for row in rows]
