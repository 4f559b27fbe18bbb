"""The client against a real HTTP server that misbehaves: LLM-01, LLM-03, LLM-04, LLM-07."""

import json
import threading
import time
from pathlib import Path

import pytest
from llm_stub import LlmStub, Scripted, answer, completion, raw, status
from pydantic import SecretStr

from engines.prompts.render import Message
from engines.reasoning import calls
from engines.reasoning.chat import ChatFailedError, ChatReply, ChatRequest
from engines.reasoning.ledger import Budget, Ledger, Price
from engines.reasoning.openai_client import OpenAIClient
from engines.reasoning.pacing import Pacer, retry_after_s
from engines.reasoning.replies import Reply

GOOD = {
    "outcome": "answered",
    "claims": [
        {"text": "A lamp.", "cites": ["shot:0"], "start_s": 0, "end_s": 1, "confidence": 0.5}
    ],
}
USAGE = {"prompt_tokens": 11, "completion_tokens": 7}


def request(max_output_tokens: int = 100) -> ChatRequest:
    return ChatRequest(
        messages=(
            Message(role="system", content="Rules."),
            Message(role="user", content="What is it?"),
        ),
        schema_name="summary",
        max_output_tokens=max_output_tokens,
        temperature=0.25,
        seed=7,
    )


def ask(stub: LlmStub, deadline_s: float = 20.0, **more: object) -> ChatReply[Reply]:
    with OpenAIClient(stub.base_url, "asked-model", **more) as client:  # type: ignore[arg-type]
        return client.ask(request(), Reply, deadline_s)


def failure(stub: LlmStub, deadline_s: float = 20.0, **more: object) -> ChatFailedError:
    with pytest.raises(ChatFailedError) as caught:
        ask(stub, deadline_s, **more)
    return caught.value


@pytest.fixture(autouse=True)
def _quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_BACKOFF_S", 0.01)


def test_a_whole_answer_is_one_request_with_all_that_decides() -> None:
    with LlmStub([answer(GOOD, usage=USAGE)]) as stub:
        reply = ask(stub, api_key=SecretStr("k3y"))
    assert reply.value.claims[0].cites == ["shot:0"]
    assert reply.model == "stub-model-2", "the model as returned, not as asked for"
    assert (reply.spent.requests, reply.spent.input_tokens, reply.spent.output_tokens) == (1, 11, 7)
    (seen,) = stub.requests
    assert seen.headers["authorization"] == "Bearer k3y"
    body = seen.body
    assert (body["model"], body["temperature"], body["seed"]) == ("asked-model", 0.25, 7)
    assert body["max_tokens"] == 100
    shape = body["response_format"]["json_schema"]
    assert shape["strict"] is True
    assert set(shape["schema"]["properties"]) == {"outcome", "claims"}
    assert shape["schema"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("mode", "sent"), [("json_object", {"type": "json_object"}), ("none", None)]
)
def test_the_structured_output_mode_is_the_servers(mode: str, sent: object) -> None:
    with LlmStub([answer(GOOD)]) as stub:
        ask(stub, structured_output=mode)
    assert stub.requests[0].body.get("response_format") == sent


@pytest.mark.parametrize(
    "cut",
    [
        '{"events":[{"start":1.0,"end":2.0,"label":"opens do',
        json.dumps(GOOD),
    ],
)
def test_a_cut_answer_is_never_parsed_and_asked_once_more_with_more_room(cut: str) -> None:
    script = [completion(cut, finish_reason="length", usage=USAGE), answer(GOOD, usage=USAGE)]
    with LlmStub(script) as stub:
        reply = ask(stub)
    limits = [seen.body["max_tokens"] for seen in stub.requests]
    assert limits == [100, 200]
    assert reply.spent.output_tokens == 14, "both calls are counted"
    assert "opens do" not in stub.requests[1].text, "broken text does not pile up in the prompt"


def test_an_answer_cut_twice_is_truncated_and_that_is_all() -> None:
    with LlmStub([completion(json.dumps(GOOD), finish_reason="length", usage=USAGE)]) as stub:
        error = failure(stub)
    assert len(stub.requests) == 2
    assert "cut even at 200 tokens" in str(error)
    assert error.spent.input_tokens == 22
    assert not error.stop_asking


@pytest.mark.parametrize(
    "bad",
    [
        completion(""),
        completion("null"),
        completion(None),
        completion('{"a":1}{"a":2}'),
        answer({**GOOD, "verdict": "approved"}),
        answer({"outcome": "answered"}),
        completion('{"outcome":"answered","outcome":"nothing_found","claims":[]}'),
        completion(json.dumps(GOOD).replace("0.5", "1e999")),
        completion(json.dumps(GOOD), finish_reason=None),
        raw(b"<html>bad gateway</html>"),
        raw(b"[]"),
        raw(b'{"choices": []}'),
    ],
)
def test_an_invalid_reply_is_asked_for_once_more(bad: Scripted) -> None:
    with LlmStub([bad, answer(GOOD)]) as stub:
        assert ask(stub).value.outcome == "answered"
    assert len(stub.requests) == 2
    assert "could not be used" in stub.requests[1].text
    assert "approved" not in stub.requests[1].text
    with LlmStub([bad]) as stub:
        error = failure(stub)
    assert len(stub.requests) == 2
    assert not error.stop_asking, "only this question has failed"


def test_light_repair_is_told() -> None:
    with LlmStub([completion(json.dumps(GOOD)[:-1] + ",}")]) as stub:
        assert ask(stub).repaired


def test_a_server_that_is_always_busy_sees_four_requests() -> None:
    with LlmStub([status(503)]) as stub:
        error = failure(stub)
    assert len(stub.requests) == 4
    assert error.spent.requests == 4
    assert error.stop_asking


def test_every_kind_of_trouble_together_stays_within_four_requests() -> None:
    script = [
        status(500),
        completion("{", finish_reason="length"),
        completion("nothing"),
        status(503),
        answer(GOOD),
    ]
    with LlmStub(script) as stub:
        failure(stub)
    assert len(stub.requests) == 4


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
def test_a_refused_request_is_not_repeated(code: int) -> None:
    with LlmStub([status(code)]) as stub:
        error = failure(stub)
    assert len(stub.requests) == 1
    assert str(code) in str(error)


def test_no_request_comes_before_the_hint_has_passed() -> None:
    with LlmStub([status(429, retry_after="1"), answer(GOOD)]) as stub:
        ask(stub)
    first, second = stub.requests
    assert second.at_s - first.at_s >= 1.0


def test_one_pace_for_all_who_ask_across_clients(tmp_path: Path) -> None:
    pace = tmp_path / "pace.json"
    with LlmStub([status(429, retry_after="1"), answer(GOOD)]) as stub:
        clients = [OpenAIClient(stub.base_url, "m", pacer=Pacer(pace)) for _ in range(6)]
        asked = threading.Thread(target=clients[0].ask, args=(request(), Reply, 20.0))
        asked.start()
        while not stub.requests:
            time.sleep(0.005)
        while not pace.exists() or "not_before" not in pace.read_text():
            time.sleep(0.005)
        others = [
            threading.Thread(target=c.ask, args=(request(), Reply, 20.0)) for c in clients[1:]
        ]
        for thread in others:
            thread.start()
        for thread in (asked, *others):
            thread.join()
        for client in clients:
            client.close()
    first, *rest = stub.requests
    assert len(rest) == 6
    assert min(seen.at_s for seen in rest) - first.at_s >= 1.0


def test_a_hint_beyond_the_deadline_ends_the_call_at_once() -> None:
    with LlmStub([status(429, retry_after="30")]) as stub:
        began = time.monotonic()
        error = failure(stub, deadline_s=2.0)
    assert time.monotonic() - began < 1.0
    assert error.stop_asking
    assert len(stub.requests) == 1


def test_a_late_answer_is_cut_off_at_the_deadline_and_counted_as_spent() -> None:
    ledger = Ledger(Budget(max_tokens=10_000))
    with LlmStub([answer(GOOD, delay_s=1.0, usage=USAGE)]) as stub:
        began = time.monotonic()
        error = failure(stub, deadline_s=0.3, ledger=ledger)
        assert time.monotonic() - began < 0.9
        time.sleep(1.0)
    assert len(stub.requests) == 1
    assert ledger.output_tokens == 100, "the whole allowance may have been billed"
    assert error.spent.output_tokens == 100
    assert error.stop_asking


def test_the_same_body_carries_the_same_idempotency_key() -> None:
    with LlmStub([status(503), completion("nothing"), answer(GOOD)]) as stub:
        ask(stub)
    keys = [seen.headers["idempotency-key"] for seen in stub.requests]
    assert keys[0] == keys[1] != keys[2]


def test_no_server_is_a_failure_with_four_attempts() -> None:
    with LlmStub([answer(GOOD)]) as stub:
        gone = stub.base_url
    with OpenAIClient(gone, "m") as client, pytest.raises(ChatFailedError) as caught:
        client.ask(request(), Reply, 20.0)
    assert caught.value.spent.requests == 4
    assert caught.value.spent.output_tokens == 0, "what was never sent is not spent"


def test_the_token_budget_fails_closed_before_anything_is_sent() -> None:
    with LlmStub([answer(GOOD, usage=USAGE)]) as stub:
        ledger = Ledger(Budget(max_tokens=50))
        error = failure(stub, ledger=ledger)
    assert not stub.requests
    assert "tokens for this video" in str(error)
    assert error.stop_asking


def test_money_runs_out_by_what_was_really_used() -> None:
    price = Price(input_per_million=1.0, output_per_million=1e4)
    with LlmStub([answer(GOOD, usage={"prompt_tokens": 10, "completion_tokens": 90})]) as stub:
        ledger = Ledger(Budget(max_money=1.95), price)
        ask(stub, ledger=ledger)
        assert ledger.money == pytest.approx(0.90001)
        ask(stub, ledger=ledger)
        error = failure(stub, ledger=ledger)
    assert len(stub.requests) == 2
    assert "money" in str(error)


def test_an_unknown_price_is_not_zero() -> None:
    with LlmStub([answer(GOOD)]) as stub:
        error = failure(stub, ledger=Ledger(Budget(max_money=100.0)))
    assert not stub.requests
    assert "price" in str(error)


def test_the_day_is_counted_over_clients_and_a_broken_count_refuses(tmp_path: Path) -> None:
    day = tmp_path / "day.json"
    budget = Budget(max_tokens_per_day=400)

    def ledger() -> Ledger:
        return Ledger(budget, day_file=day)

    big = {"prompt_tokens": 100, "completion_tokens": 100}
    with LlmStub([answer(GOOD, usage=big)]) as stub:
        ask(stub, ledger=ledger(), structured_output="none")
        assert "tokens for this day" in str(
            failure(stub, ledger=ledger(), structured_output="none", deadline_s=5)
            if json.loads(day.read_text()).popitem()[1] > 300
            else _second(stub, ledger)
        )
        day.write_text("not a count")
        assert "count cannot be kept" in str(failure(stub, ledger=ledger()))
    assert day.read_text() == "not a count"


def _second(stub: LlmStub, ledger: object) -> ChatFailedError:
    ask(stub, ledger=ledger(), structured_output="none")  # type: ignore[operator]
    return failure(stub, ledger=ledger(), structured_output="none")  # type: ignore[operator]


def test_a_limit_per_day_needs_a_place_to_count() -> None:
    with pytest.raises(ValueError, match="needs a file"):
        Ledger(Budget(max_money_per_day=1.0), Price(input_per_million=0, output_per_million=0))


def test_a_server_that_reports_no_usage_is_estimated() -> None:
    with LlmStub([answer(GOOD)]) as stub:
        reply = ask(stub)
    assert reply.spent.input_tokens > 100, "the schema was sent and counts"
    assert 20 < reply.spent.output_tokens < 80


def test_a_refusal_is_not_asked_again() -> None:
    with LlmStub([completion(None, refusal="I will not")]) as stub:
        assert "refused" in str(failure(stub))
    assert len(stub.requests) == 1
    with LlmStub([completion("x", finish_reason="content_filter")]) as stub:
        assert "refused" in str(failure(stub))


def test_a_redirect_is_not_followed() -> None:
    with LlmStub([answer(GOOD)]) as target, LlmStub([status(307)]) as stub:
        failure(stub)
    assert not target.requests


def test_a_key_never_shows_in_an_error() -> None:
    with LlmStub([status(401)]) as stub:
        error = failure(stub, api_key=SecretStr("s3cret-k3y"))
    assert "s3cret" not in str(error)


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("soon", None), (None, None)]
)
def test_retry_after_in_seconds(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header) == seconds


def test_retry_after_as_a_date() -> None:
    assert retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    far = retry_after_s("Wed, 21 Oct 2099 07:28:00 GMT")
    assert far is not None
    assert far > 1e6
