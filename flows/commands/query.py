"""sql, dsn, search, why: reading what was published."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from engines.errors import ServiceUnavailableError, UsageError
from flows.clock import clock
from flows.commands.output import dump, say, table
from tasks.settings import get_settings
from tasks.store.lineage import why as lineage_of
from tasks.store.search import search as find_moments
from tasks.store.session import create_engine
from tasks.store.sql import query as run_query


def sql(query: str, *, echo: bool, as_json: bool) -> None:
    """Run one statement as the reader role and print its rows.

    Raises:
        UsageError: the statement is wrong.
        AccessDeniedError: it wants what the reader may not do.
        ServiceUnavailableError: Postgres is not there.
    """
    if echo and not as_json:
        say(query)
        say()
    found = run_query(create_engine(reader_dsn()), query)
    if as_json:
        names = _distinct(found.columns)
        dump([dict(zip(names, row, strict=True)) for row in found.rows])
        return
    table(found.columns, found.rows)
    say(f"({len(found.rows)} row{'' if len(found.rows) == 1 else 's'})")


def dsn() -> None:
    """Print the reader's address; it has a password."""
    say(reader_dsn())


def search(text: str, *, limit: int, as_json: bool) -> None:
    """Print moments that match ``text``, the best first."""
    moments = find_moments(create_engine(reader_dsn()), text, limit)
    if as_json:
        dump(moments)
        return
    rows = [
        (f"{m.score:.2f}", m.matched, clock(m.start_s), f"s3://{m.bucket}/{m.key}", m.snippet)
        for m in moments
    ]
    table(("score", "matched", "at", "video", "what"), rows)


def why(fact_id: str, *, as_json: bool) -> None:
    """Print the lineage of a fact.

    Raises:
        UsageError: not a fact id, or no such fact.
    """
    try:
        uuid = UUID(fact_id)
    except ValueError as error:
        msg = f"not a fact id: {fact_id!r}; take one from a column fact_id"
        raise UsageError(msg) from error
    steps = lineage_of(create_engine(reader_dsn()), uuid)
    if not steps:
        msg = f"no fact {fact_id}"
        raise UsageError(msg)
    if as_json:
        dump(steps)
        return
    rows = [(s.step, "  " * s.depth + s.kind, s.name, s.id, s.hash) for s in steps]
    table(("step", "kind", "name", "id", "hash"), rows)


def reader_dsn() -> str:
    """Address of the database for the reader role.

    Raises:
        ServiceUnavailableError: none is known.
    """
    url = get_settings().reader_url
    if url is None:
        msg = "no reader address: run `reelgraph up` or set REELGRAPH_READER_URL"
        raise ServiceUnavailableError(msg)
    return url.get_secret_value()


def _distinct(columns: Sequence[str]) -> list[str]:
    """Column names that do not hide each other in a JSON object."""
    seen: Counter[str] = Counter()
    names = []
    for name in columns:
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return names
