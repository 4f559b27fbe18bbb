"""Why, what next, what if: worded from tested edges, in hops that are stored.

Every claim is extract -> rule -> statement: which figures were taken from which edge, which rule
they passed, and how sure the statement is. Where the miner abstained, so does the answer, with
the miner's own number.
"""

from pydantic import JsonValue

from engines.contracts.reasoning import AnswerKind
from engines.reasoning.rules.case import Case, Claim, harmless, sentence
from engines.reasoning.rules.links import LINKS_SHOWN, Link, links

QUESTIONS: dict[AnswerKind, str] = {
    "why": "Why does it happen?",
    "next": "What happens next?",
    "what_if": "What if the cause were taken away?",
}
_PENDING_LAGS = 1.5
"""A cause waits for its effect until so many lags have passed."""


def why(case: Case) -> tuple[Claim, ...]:
    """One claim for each of the surest tested causes, or one abstention."""
    found = links(case)
    if not found:
        return (_no_links(case, "why"),)
    return tuple(_why(case, link) for link in found[:LINKS_SHOWN])


def _why(case: Case, link: Link) -> Claim:
    question = f"Why does {link.effect} happen?"
    if link.effect_event is not None and link.cause_event is not None:
        cause, effect = case.event(link.cause_event), case.event(link.effect_event)
        question = f"Why does {link.effect} happen at {effect.span.start_s:.2f} s?"
        text = (
            f"{case.describe(link.effect_event)} at {effect.span.start_s:.2f} s follows "
            f"{case.describe(link.cause_event)} at {cause.span.start_s:.2f} s: {link.cause} is a "
            f"tested cause of {link.effect} ({link.numbers()})"
        )
        evidence = (*cause.evidence, *effect.evidence)
    else:
        text = f"{link.cause} is a tested cause of {link.effect} ({link.numbers()})"
        evidence = ()
    answer: dict[str, JsonValue] = {
        "outcome": "answered",
        **link.values(),
        "hops": _hops(link, f"verdict causal by {link.edge.test}"),
    }
    return case.claim(
        "why",
        question,
        sentence(text),
        link.cites,
        answer,
        (link.cause_event, link.effect_event),
        evidence,
    )


def what_if(case: Case) -> tuple[Claim, ...]:
    """What the fitted model loses without a cause, where that was computed and is not zero."""
    found = links(case)
    if not found:
        return (_no_links(case, "what_if"),)
    tested = [link for link in found if _loses(link)]
    if not tested:
        reason = (
            f"0 of {len(found)} causal edges have a counterfactual interval without zero, "
            "at least 1 needed"
        )
        return (_abstain(case, "what_if", reason, [link.edge_ref for link in found]),)
    return tuple(_what_if(case, link) for link in tested[:LINKS_SHOWN])


def _loses(link: Link) -> bool:
    """Whether the effects lost per removed cause are known, with an interval without zero."""
    low, high = link.edge.delta_low, link.edge.delta_high
    if link.edge.counterfactual_delta is None or low is None or high is None:
        return False
    return not low <= 0 <= high


def _what_if(case: Case, link: Link) -> Claim:
    edge = link.edge
    text = (
        f"without {link.cause}, the fitted model loses {edge.counterfactual_delta:.3g} of "
        f"{link.effect} per occurrence (interval {edge.delta_low:.3g} to {edge.delta_high:.3g})"
    )
    answer: dict[str, JsonValue] = {
        "outcome": "answered",
        **link.values(),
        "lost_per_cause": edge.counterfactual_delta,
        "lost_low": edge.delta_low,
        "lost_high": edge.delta_high,
        "hops": _hops(link, "interval without zero"),
    }
    question = f"What if {link.cause} were taken away?"
    return case.claim("what_if", question, sentence(text), link.cites, answer)


def next_(case: Case) -> tuple[Claim, ...]:
    """Effects still open at the end of the video, or what would open one."""
    found = links(case)
    if not found:
        return (_no_links(case, "next"),)
    pending = [(link, ref) for link in found if (ref := _open_cause(case, link)) is not None]
    if pending:
        return tuple(_next(case, link, ref) for link, ref in pending[:LINKS_SHOWN])
    best = found[0]
    lag = f" about {best.edge.lag_s:.2f} s" if best.edge.lag_s is not None else ""
    text = (
        f"no tested cause is open at the end of the video; another {best.cause} would be "
        f"followed by {best.effect}{lag} later ({best.numbers()})"
    )
    answer: dict[str, JsonValue] = {
        "outcome": "nothing_found",
        "rules": [link.values() for link in found[:LINKS_SHOWN]],
    }
    cites = [link.edge_ref for link in found[:LINKS_SHOWN]]
    return (case.claim("next", QUESTIONS["next"], sentence(text), cites, answer),)


def _open_cause(case: Case, link: Link) -> str | None:
    """The last event of the cause's type, if its effect has not come and still can."""
    events = case.events.events
    causes = [n for n, e in enumerate(events) if e.type == link.edge.cause_type]
    lag_s = link.edge.lag_s
    if not causes or lag_s is None:
        return None
    last = max(causes, key=lambda n: (events[n].span.start_s, n))
    at_s = events[last].span.start_s
    seen = any(e.type == link.edge.effect_type and e.span.start_s > at_s for e in events)
    return None if seen or at_s + _PENDING_LAGS * lag_s < case.end_s else f"event:{last}"


def _next(case: Case, link: Link, cause_ref: str) -> Claim:
    at_s = case.event(cause_ref).span.start_s
    expected_s = at_s + (link.edge.lag_s or 0.0)
    text = (
        f"{link.effect} is expected at about {expected_s:.2f} s: {case.describe(cause_ref)} at "
        f"{at_s:.2f} s is a tested cause of it ({link.numbers()}), and it has not come by the end"
    )
    answer: dict[str, JsonValue] = {
        "outcome": "answered",
        **link.values(),
        "open_event": cause_ref,
        "expected_s": round(expected_s, 3),
        "hops": _hops(link, "cause seen, effect not yet"),
    }
    cites = (cause_ref, link.edge_ref)
    return case.claim("next", QUESTIONS["next"], sentence(text), cites, answer, (cause_ref,))


def hop_lines(case: Case) -> tuple[str, ...]:
    """The settled steps as lines for a multi-hop prompt: refs, types and figures only."""
    lines = []
    for link in links(case):
        edge = link.edge
        change = ""
        if edge.counterfactual_delta is not None:
            change = f", effects lost per removed cause {edge.counterfactual_delta:.3g}"
        events = " and ".join(r for r in (link.cause_event, link.effect_event) if r)
        shown = f", events {events}" if events else ""
        lines.append(
            f"{link.edge_ref} {edge.cause_type} before {edge.effect_type}, causal, "
            f"{link.numbers()}{change}{shown}"
        )
    return tuple(lines)


def _hops(link: Link, rule: str) -> list[JsonValue]:
    return [
        {"hop": "extract", "from": link.edge_ref, "values": link.values()},
        {"hop": "rule", "rule": rule, "passed": True},
        {"hop": "statement", "confidence": link.edge.confidence},
    ]


def _no_links(case: Case, kind: AnswerKind) -> Claim:
    """Two different results: nothing is there, or nothing can be said."""
    causes = case.causes
    reason = harmless(causes.reason)
    cites = [f"edge:{n}" for n in range(min(LINKS_SHOWN, len(causes.edges)))]
    if causes.verdict == "no_edges":
        text = f"no tested pair of events is causal: {reason}"
        answer: dict[str, JsonValue] = {"outcome": "nothing_found", "reason": reason}
        return case.claim(kind, QUESTIONS[kind], sentence(text), cites, answer)
    return _abstain(case, kind, reason, cites)


def _abstain(case: Case, kind: AnswerKind, reason: str, cites: list[str]) -> Claim:
    answer: dict[str, JsonValue] = {
        "outcome": "not_enough_evidence",
        "reason": reason,
        "num_events": case.causes.num_events,
        "effective_n": case.causes.effective_n,
    }
    text = sentence(f"not enough evidence: {reason}")
    return case.claim(kind, QUESTIONS[kind], text, cites, answer)
