"""What the command line takes as parameters of a run."""

import pytest

from engines.errors import UsageError
from flows.clock import clock
from flows.commands.run import parse_parameters


def test_values_are_json_or_text():
    parsed = parse_parameters(
        ['reason.questions=["why"]', "causes.alpha=0.01", "listen.language=de"]
    )
    assert parsed == {
        "reason": {"questions": ["why"]},
        "causes": {"alpha": 0.01},
        "listen": {"language": "de"},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reason", "stage.name=value"),
        ("reason=1", "stage.name=value"),
        ("nosuch.thing=1", "nosuch"),
        ("reason.nosuch=1", "reason.nosuch"),
        ("causes.alpha=7", "causes.alpha"),
        ("causes.alpha=ten", "causes.alpha"),
        ("causes.seed=1e400", "causes.seed"),
    ],
)
def test_a_wrong_parameter_is_named(text, message):
    with pytest.raises(UsageError, match=message):
        parse_parameters([text])


def test_nothing_given_is_nothing_sent():
    assert parse_parameters([]) == {}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00.00"), (61.5, "1:01.50"), (3600, "60:00.00"), (-0.5, "-0:00.50")]
)
def test_clock(seconds, text):
    assert clock(seconds) == text
