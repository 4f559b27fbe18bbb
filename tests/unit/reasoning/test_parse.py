"""Replies as models really write them: LLM-03."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.reasoning.parse import InvalidReplyError, parse_object


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('```json\n{"a":1}\n```\nSee [docs].', {"a": 1}),
        ('Here is `the` result: {"a":1}', {"a": 1}),
        ('{"code":"use `x` and }"}', {"code": "use `x` and }"}),
        ('As {x} says in [1]: {"a": {"b": [1, 2]}} and {so on}', {"a": {"b": [1, 2]}}),
        ('{"quote": "she said \\"{\\" twice"}', {"quote": 'she said "{" twice'}),
        ("{}", {}),
    ],
)
def test_the_first_whole_object_is_taken_and_prose_ignored(reply: str, value: object) -> None:
    parsed = parse_object(reply)
    assert parsed.value == value
    assert not parsed.repaired


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"a":1,}', {"a": 1}),
        ('{"a":[1,2, ],"b":",}" , }', {"a": [1, 2], "b": ",}"}),
        ('{"a":"two\nlines"}', {"a": "two\nlines"}),
    ],
)
def test_light_repair_is_told(reply: str, value: object) -> None:
    parsed = parse_object(reply)
    assert parsed.value == value
    assert parsed.repaired


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "null",
        "no object here",
        '{"a":1}\n{"a":2}',
        '{"a":1} {"b":2,}',
        '{"a":1,"a":2}',
        '{"a":{"b":1,"b":2}}',
        '{"a":1,"a":2,}',
        '[{"a":1}]',
        '```json\n[{"a":1}]\n```',
        '{"a": NaN}',
        '{"a": -Infinity,}',
        '{"events":[{"start":1.0,"end":2.0,"label":"opens do',
        '{"claims": [{"text": "x" "cites": []}]}',
        '{"a": 1',
    ],
)
def test_what_is_ambiguous_or_broken_is_invalid(reply: str) -> None:
    with pytest.raises(InvalidReplyError):
        parse_object(reply)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), _JSON, max_size=4))
def test_every_object_comes_back_whole_from_a_fence(value: dict[str, object]) -> None:
    reply = f"Sure:\n```json\n{json.dumps(value)}\n```\nThat is all."
    assert parse_object(reply).value == value


@given(st.text(alphabet='{}[]",:a1 \\\n', max_size=40))
def test_no_text_is_more_than_invalid(reply: str) -> None:
    with contextlib.suppress(InvalidReplyError):
        assert isinstance(parse_object(reply).value, dict)
