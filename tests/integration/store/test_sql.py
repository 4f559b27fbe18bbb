"""Queries of users: what they get, and what their mistakes are called."""

import pytest
from sqlalchemy import Engine

from engines.errors import AccessDeniedError, UsageError
from tasks.store.sql import query


def test_a_query_gives_columns_and_rows(reader: Engine) -> None:
    found = query(reader, "select key, 100 as \"100%\" from reel.videos where key like '%.mp4'")
    assert found.columns == ("key", "100%")
    assert found.rows == (("a b+c%20é🎬.mp4", 100),)


def test_no_rows_keep_their_columns(reader: Engine) -> None:
    found = query(reader, "select fact_id from reel.shots where false")
    assert (found.columns, found.rows) == (("fact_id",), ())


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("select 1 from from", UsageError),
        ("select nothing from reel.shots", UsageError),
        ("select 1 / 0", UsageError),
        ("select * from reel.similar('[1,2]'::vector, 'no model', 3)", UsageError),
        ("insert into reel.shots (ordinal) values (1)", AccessDeniedError),
        ("select * from core.videos", AccessDeniedError),
        ("set local statement_timeout = 20; select pg_sleep(5)", UsageError),
    ],
)
def test_a_mistake_is_named_on_one_line(
    reader: Engine, statement: str, expected: type[Exception]
) -> None:
    with pytest.raises(expected) as caught:
        query(reader, statement)
    assert "\n" not in str(caught.value)
