"""Summary, order and intent, put together from the evidence alone."""

import re
from collections import Counter
from itertools import pairwise

from pydantic import JsonValue

from engines.contracts.reasoning import EvidenceItem
from engines.prompts.normalise import canonical_words, terms
from engines.prompts.untrusted import INSTRUCTION_LIKE
from engines.reasoning.evidence import is_plain_type, kind_of
from engines.reasoning.rules.case import Case, Claim, quote, readable, sentence
from engines.reasoning.rules.links import LINKS_SHOWN, links

QUOTES_SHOWN = 3
STEPS_SHOWN = 12
TERMS_SHOWN = 8
_PURPOSE = re.compile(
    r"\b(in order to|so that|so as to|for the purpose of|aims? to|the (?:goal|aim|purpose) is"
    r"|(?:i|we|they|he|she) (?:want|wants|wanted|need|needs|plan|plans|intend|intends) to"
    r"|(?:i am|i'm|we are|we're) (?:going|trying) to|let's|let us|to make sure)\b"
)
_ACTING_SOURCES = frozenset({"action", "speech", "motion"})


def summary(case: Case) -> tuple[Claim, ...]:
    """One claim of a few sentences; each sentence with its own cites in the structured answer."""
    question = "What is in this video?"
    if not case.evidence:
        reason = "0 facts, at least 1 needed"
        answer: dict[str, JsonValue] = {"outcome": "not_enough_evidence", "reason": reason}
        return (case.claim("summary", question, f"Not enough evidence: {reason}.", (), answer),)
    parts = [
        part
        for part in (
            _picture(case),
            _named(case, "action", "actions"),
            _named(case, "label", "seen"),
            _named(case, "sound", "heard"),
            _words(case, "utterance", "speech says"),
            _words(case, "text", "on-screen text reads"),
            _causes(case),
        )
        if part is not None
    ]
    sentences: list[JsonValue] = [
        {"about": about, "cites": list(cites), **values} for about, _, cites, values in parts
    ]
    cites = [ref for part in parts for ref in part[2]]
    text = " ".join(sentence(part[1]) for part in parts)
    structured: dict[str, JsonValue] = {"outcome": "answered", "sentences": sentences}
    return (case.claim("summary", question, text, cites, structured),)


_Part = tuple[str, str, tuple[str, ...], dict[str, JsonValue]]


def _picture(case: Case) -> _Part:
    shots = case.of("shot")
    length_s = case.end_s - case.start_s
    if not shots:
        return ("extent", f"{length_s:.1f} s without shots", (), {"shots": 0})
    count = f"{len(shots)} shot{'s' if len(shots) > 1 else ''}"
    refs = tuple(s.ref for s in shots)
    return ("extent", f"{length_s:.1f} s of video in {count}", refs, {"shots": len(shots)})


def _named(case: Case, kind: str, word: str) -> _Part | None:
    """Labels or actions by name, each once with its most salient fact."""
    best: dict[str, EvidenceItem] = {}
    for item in case.of(kind):
        if INSTRUCTION_LIKE in item.flags:
            continue
        name = " ".join(canonical_words(item.text))
        if name not in best or item.saliency > best[name].saliency:
            best[name] = item
    if not best:
        return None
    top = sorted(best.items(), key=lambda pair: (-pair[1].saliency, pair[0]))[:TERMS_SHOWN]
    shown = ", ".join(f"{item.text} ({_score(item)})" for _, item in top)
    names: list[JsonValue] = [name for name, _ in top]
    return (word, f"{word}: {shown}", tuple(i.ref for _, i in top), {"names": names})


def _score(item: EvidenceItem) -> str:
    """The part of our note that is the score."""
    return item.note.rpartition(", ")[2]


def _words(case: Case, kind: str, verb: str) -> _Part | None:
    """Spoken or shown words: the most salient ones quoted, the topic as standard terms."""
    items = case.of(kind)
    if not items:
        return None
    plain = [i for i in items if INSTRUCTION_LIKE not in i.flags]
    top = sorted(plain, key=lambda i: (-i.saliency * min(len(i.text), 80), i.start_s))
    shown = sorted(top[:QUOTES_SHOWN], key=lambda i: (i.start_s, i.ref))
    withheld = len(items) - len(plain)
    said = "; ".join(f"{quote(i)} ({i.start_s:.1f} s)" for i in shown)
    note = f"{withheld} of {len(items)} lines withheld: they read like instructions to a model"
    text = f"{verb} {said}" if said else f"{verb} nothing that can be quoted"
    counted = Counter(t for i in plain for t in terms(i.text))
    top_terms: list[JsonValue] = [
        t for t, _ in sorted(counted.items(), key=lambda p: (-p[1], p[0]))[:TERMS_SHOWN]
    ]
    values: dict[str, JsonValue] = {
        "lines": len(items),
        "terms": top_terms,
        "withheld": withheld,
    }
    cites = tuple(i.ref for i in (shown or items[:QUOTES_SHOWN]))
    return (kind, f"{text}; {note}" if withheld else text, cites, values)


def _causes(case: Case) -> _Part | None:
    found = links(case)[:LINKS_SHOWN]
    if not found:
        return None
    said = "; ".join(f"{link.cause} causes {link.effect} ({link.numbers()})" for link in found)
    pairs: list[JsonValue] = [[link.edge.cause_type, link.edge.effect_type] for link in found]
    return ("causes", f"tested causes: {said}", tuple(x.edge_ref for x in found), {"pairs": pairs})


def order(case: Case) -> tuple[Claim, ...]:
    """The first occurrences of each type of event in the order in which they begin."""
    question = "In what order do things happen?"
    steps = _first_of_each_type(case)
    if len(steps) < 2:  # noqa: PLR2004 - one thing has no order
        reason = f"{len(steps)} dated kinds of event, at least 2 needed"
        answer: dict[str, JsonValue] = {"outcome": "not_enough_evidence", "reason": reason}
        text = f"Not enough evidence: {reason}."
        return (case.claim("order", question, text, [s.ref for s in steps], answer),)
    relations: list[JsonValue] = []
    words = f"{quote(steps[0])} ({steps[0].start_s:.2f} s)"
    for before, after in pairwise(steps):
        relation = _relation(before, after)
        joint = {"before": "then", "overlaps": "while it lasts", "together": "together with"}
        words += f", {joint[relation]} {quote(after)} ({after.start_s:.2f} s)"
        relations.append({"first": before.ref, "second": after.ref, "relation": relation})
    dated: list[JsonValue] = [
        {"ref": s.ref, "start_s": round(s.start_s, 3), "end_s": round(s.end_s, 3)} for s in steps
    ]
    structured: dict[str, JsonValue] = {
        "outcome": "answered",
        "steps": dated,
        "relations": relations,
    }
    cites = [s.ref for s in steps]
    return (case.claim("order", question, sentence(f"first {words}"), cites, structured),)


def _first_of_each_type(case: Case) -> tuple[EvidenceItem, ...]:
    """Types with a tested cause or effect before others, single words that are said last."""
    first: dict[str, EvidenceItem] = {}
    for item in case.of("event"):
        first.setdefault(case.event(item.ref).type, item)
    linked = {t for x in links(case) for t in (x.edge.cause_type, x.edge.effect_type)}
    if first:
        ranked = sorted(
            first.items(),
            key=lambda p: (p[0] not in linked, not is_plain_type(p[0]), p[1].start_s, p[1].ref),
        )
        chosen = [item for _, item in ranked[:STEPS_SHOWN]]
        return tuple(sorted(chosen, key=lambda i: (i.start_s, i.end_s, i.ref)))
    for item in case.evidence:
        if kind_of(item.ref) in {"action", "utterance", "text", "label"}:
            first.setdefault(f"{kind_of(item.ref)}:{item.text}", item)
    top = sorted(first.values(), key=lambda i: (-i.saliency, i.start_s, i.ref))[:STEPS_SHOWN]
    return tuple(sorted(top, key=lambda i: (i.start_s, i.end_s, i.ref)))


def _relation(before: EvidenceItem, after: EvidenceItem) -> str:
    if before.start_s == after.start_s:
        return "together"
    return "overlaps" if after.start_s < before.end_s else "before"


def intent(case: Case) -> tuple[Claim, ...]:
    """Purposes that are said in words, and tested effects of what somebody does."""
    question = "What is it for?"
    said = [
        i
        for i in case.of("utterance")
        if INSTRUCTION_LIKE not in i.flags and _PURPOSE.search(i.text.casefold())
    ]
    claims = [_said_purpose(case, question, i) for i in said[:QUOTES_SHOWN]]
    acting = [x for x in links(case) if x.edge.cause_type.split(":")[0] in _ACTING_SOURCES]
    for link in acting[:LINKS_SHOWN]:
        text = (
            f"{link.cause} is a tested cause of {link.effect} ({link.numbers()}); if it is done "
            "on purpose, that effect is the only goal the evidence shows"
        )
        answer: dict[str, JsonValue] = {
            "outcome": "answered",
            "basis": "tested_effect",
            **link.values(),
        }
        claims.append(case.claim("intent", question, sentence(text), link.cites, answer))
    if claims:
        return tuple(claims)
    looked = case.of("utterance")
    reason = (
        f"0 of {len(looked)} utterances state a purpose and 0 actions have a tested effect, "
        "at least 1 needed"
    )
    outcome = "nothing_found" if looked else "not_enough_evidence"
    said_of_it = "no purpose is stated or shown" if looked else "not enough evidence"
    text = f"{said_of_it}: {reason}"
    abstention: dict[str, JsonValue] = {"outcome": outcome, "reason": reason}
    cites = [i.ref for i in looked[:QUOTES_SHOWN]]
    return (case.claim("intent", question, sentence(text), cites, abstention),)


def _said_purpose(case: Case, question: str, item: EvidenceItem) -> Claim:
    match = _PURPOSE.search(item.text.casefold())
    marker = match.group(1) if match else ""
    answer: dict[str, JsonValue] = {
        "outcome": "answered",
        "basis": "said",
        "utterance": item.ref,
        "marker": marker,
        "terms": list(terms(item.text)),
    }
    text = f"a purpose is said in words at {item.start_s:.1f} s: {quote(item)}"
    return case.claim("intent", question, sentence(text), (item.ref,), answer)


def consistent(case: Case) -> tuple[Claim, ...]:
    """What the ledger found, or how many pairs were compared without finding anything."""
    question = "Is it consistent?"
    if case.contradictions:
        return tuple(
            case.claim(
                "consistent",
                question,
                sentence(f"{readable(c.contradiction_kind)}: {c.resolution}"),
                (c.fact_a, c.fact_b),
                {
                    "outcome": "answered",
                    "consistent": False,
                    "kind": c.contradiction_kind,
                    "facts": [c.fact_a, c.fact_b],
                },
            )
            for c in case.contradictions
        )
    checked = case.consistency_checks
    if checked == 0:
        reason = "0 pairs of facts that could disagree, at least 1 needed"
        answer: dict[str, JsonValue] = {"outcome": "not_enough_evidence", "reason": reason}
        return (case.claim("consistent", question, f"Not enough evidence: {reason}.", (), answer),)
    text = f"no contradiction among {checked} pairs of facts that could disagree"
    looked: dict[str, JsonValue] = {
        "outcome": "nothing_found",
        "consistent": True,
        "pairs_checked": checked,
    }
    return (case.claim("consistent", question, sentence(text), (), looked),)
