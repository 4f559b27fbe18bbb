"""Every query of docs/sql.md runs and answers as printed there."""

import pytest
from sql_doc import examples

EXAMPLES = list(examples())
VARIES = {"confidence", "effective_n", "lost_without_it", "similarity"}
"""Columns whose last digits may differ between processors."""


@pytest.fixture(scope="module")
def demo(stack, clips_dir):
    outcome = stack.run(str(clips_dir / "demo.mp4"))
    assert outcome["status"] == "done"
    return stack


def test_there_are_twenty():
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("example", EXAMPLES, ids=range(1, len(EXAMPLES) + 1))
def test_the_query_answers_as_printed(demo, example):
    rows = demo.sql(example.query)
    assert rows, "the query answers nothing on the demo clip"
    assert list(rows[0]) == example.columns
    assert len(rows) == example.num_rows
