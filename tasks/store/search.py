"""Search across videos, as ``reel.search`` gives it."""

from uuid import UUID

from sqlalchemy import Engine, text

from engines.contracts.base import Contract
from tasks.store.session import transaction


class Moment(Contract):
    """A place in a video that fits."""

    score: float
    """0.5 to 1 when the words are there, below for a near miss."""
    matched: str
    """speech, text, label, event or answer."""
    fact_id: UUID
    video_id: UUID
    bucket: str
    key: str
    start_s: float
    end_s: float
    snippet: str


def search(engine: Engine, words: str, limit: int = 20) -> list[Moment]:
    """Moments that fit ``words`` (syntax of web search), best first."""
    statement = text("select * from reel.search(:words, :limit)")
    with transaction(engine) as connection:
        rows = connection.execute(statement, {"words": words, "limit": limit}).all()
    return [Moment(**row._mapping) for row in rows]
