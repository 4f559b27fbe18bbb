"""The contradiction ledger: pairs of facts that cannot both hold, by rules that are sound.

Only pairs that speak about the same thing at the same time are compared, so that silence is never
taken for disagreement. The rules:

- ``number_shown_vs_said``: a number before the same noun differs between text and speech;
- ``subtitle_vs_speech``: a line of text that is nearly the words spoken, but for a number or a
  negation;
- ``subtitle_track_vs_speech``: the listen stage found that a text track of the file says other
  words in the same language; the cue is no fact of ours, so the row names the utterance twice;
- ``effect_before_cause``: an instance of a causal edge whose effect begins first;
- ``causal_cycle``: two causal edges between the same types, in both directions.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator

from engines.contracts.base import Contract
from engines.contracts.causal import CausalEdge, CausesDocument, EventsDocument
from engines.contracts.reasoning import Contradiction, EvidenceItem
from engines.contracts.time import TimeSpan
from engines.prompts.normalise import canonical_words
from engines.prompts.untrusted import INSTRUCTION_LIKE
from engines.reasoning.evidence import COUNTER, kind_of

CLOCK_HZ = 1_000_000
"""Spans made from seconds are in microseconds."""
NEAR_S = 2.0
"""Text and speech this far apart may still be about the same thing."""
SUBTITLE_OVERLAP = 0.6
"""Share of a line's words that speech must hold for the line to be its subtitle."""
MIN_SUBTITLE_WORDS = 4
MAX_ROWS = 50
SUBTITLE_DIFFERS = "subtitle_differs"
SUBTITLE_WITNESS = frozenset({SUBTITLE_DIFFERS, "subtitle_agrees"})
"""Flags by which the listen stage says what a text track of the file told it."""

_UNIT_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TEN_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * n for n, word in enumerate(_TEN_WORDS.split(), 2)}
_UNITS = {word: n for n, word in enumerate(_UNIT_WORDS.split())}
_NUMBER_WORDS = _UNITS | _TENS
_LARGEST_DIGIT = 9
_DIGITS = re.compile(r"\A\d{1,9}\Z")
_NOUN = re.compile(r"\A[^\W\d_]{3,}\Z")
_NEGATIONS = frozenset(
    {"not", "no", "never", "don't", "doesn't", "isn't", "aren't", "can't", "cannot", "won't"}
)
_MEASURE_WORDS = (
    "second minute hour day week month year time percent degree dollar euro pound cent meter mile "
    "kilometer centimeter inch foot gram kilogram ounce liter million thousand hundred"
)
_MEASURES = frozenset(_MEASURE_WORDS.split())
"""Two measures in one unit can both hold (a timer beside a plan); two counts of a thing cannot."""
_Number = int


class Ledger(Contract):
    """What disagrees, and how many pairs were compared."""

    contradictions: tuple[Contradiction, ...]
    pairs_checked: int
    frozen_edges: tuple[str, ...] = ()
    """Edges whose claims are left out, since their times cannot hold."""


def find(
    evidence: tuple[EvidenceItem, ...], events: EventsDocument, causes: CausesDocument
) -> Ledger:
    """Compare every pair that could disagree.

    Args:
        evidence: in time order.
        events: the timeline that the edges' instances refer to.
        causes: tested edges.

    Returns:
        At most ``MAX_ROWS`` contradictions in time order, with the number of pairs compared.
    """
    rows: list[Contradiction] = []
    checked = 0
    for text, speech in _text_and_speech(evidence):
        checked += 1
        row = _numbers_disagree(text, speech) or _subtitle_disagrees(text, speech)
        if row is not None:
            rows.append(row)
    for item in evidence:
        if SUBTITLE_WITNESS & set(item.flags):
            checked += 1
        if SUBTITLE_DIFFERS in item.flags:
            resolution = "the text track says other words; the trust of the utterance is lowered"
            rows.append(_row(item, item, "subtitle_track_vs_speech", resolution))
    frozen: list[str] = []
    for n, edge in enumerate(causes.edges):
        if edge.verdict != "causal":
            continue
        checked += 1
        row = _backwards(edge, events) or _cycle(n, edge, causes)
        if row is not None:
            frozen.append(f"edge:{n}")
            rows.append(row)
    rows.sort(key=lambda r: (r.span.start_s, r.fact_a, r.fact_b))
    return Ledger(
        contradictions=tuple(rows[:MAX_ROWS]), pairs_checked=checked, frozen_edges=tuple(frozen)
    )


def numbers_of(words: tuple[str, ...]) -> dict[str, set[_Number]]:
    """Whole numbers by the noun that follows them, plural ending taken off.

    ``("take", "twenty", "one", "eggs")`` gives ``{"egg": {21}}``. Times and decimals are no
    counts and are left out.
    """
    found: dict[str, set[_Number]] = {}
    i = 0
    while i < len(words):
        value, length = _number_at(words, i)
        if value is None:
            i += 1
            continue
        i += length
        if i < len(words) and _NOUN.match(words[i]) and words[i] not in _NUMBER_WORDS:
            found.setdefault(_singular(words[i]), set()).add(value)
    return found


def _number_at(words: tuple[str, ...], i: int) -> tuple[_Number | None, int]:
    word = words[i]
    if _DIGITS.match(word):
        return int(word), 1
    if (
        word in _TENS
        and i + 1 < len(words)
        and 0 < _NUMBER_WORDS.get(words[i + 1], 0) < len("nine") + 6
    ):
        return _TENS[word] + _NUMBER_WORDS[words[i + 1]], 2
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word], 1
    return None, 1


def _singular(noun: str) -> str:
    return noun[:-1] if noun.endswith("s") and not noun.endswith("ss") else noun


def _text_and_speech(
    evidence: tuple[EvidenceItem, ...],
) -> Iterator[tuple[EvidenceItem, EvidenceItem]]:
    usable = [i for i in evidence if not {INSTRUCTION_LIKE, COUNTER} & set(i.flags)]
    spoken = [i for i in usable if kind_of(i.ref) == "utterance"]
    starts = [s.start_s for s in spoken]
    longest_s = max((s.end_s - s.start_s for s in spoken), default=0.0)
    for text in usable:
        if kind_of(text.ref) != "text":
            continue
        first = bisect_left(starts, text.start_s - NEAR_S - longest_s)
        last = bisect_left(starts, text.end_s + NEAR_S)
        for speech in spoken[first:last]:
            if text.start_s < speech.end_s + NEAR_S:
                yield text, speech


def _numbers_disagree(text: EvidenceItem, speech: EvidenceItem) -> Contradiction | None:
    shown = numbers_of(canonical_words(text.text))
    said = numbers_of(canonical_words(speech.text))
    for noun in sorted(shown.keys() & said.keys() - _MEASURES):
        if shown[noun] & said[noun]:
            continue
        numbers = (min(shown[noun]), min(said[noun]))
        return _row(
            text,
            speech,
            "number_shown_vs_said",
            f"text shows {numbers[0]} and speech says {numbers[1]} of {noun}; neither is used",
        )
    return None


def _subtitle_disagrees(text: EvidenceItem, speech: EvidenceItem) -> Contradiction | None:
    shown, said = canonical_words(text.text), canonical_words(speech.text)
    if len(shown) < MIN_SUBTITLE_WORDS:
        return None
    common = sum(1 for w in shown if w in set(said))
    if common / len(shown) < SUBTITLE_OVERLAP:
        return None
    window = _best_window(shown, said)
    negated = (bool(_NEGATIONS & set(shown)), bool(_NEGATIONS & set(window)))
    if negated[0] == negated[1]:
        return None
    words = ("with", "without") if negated[0] else ("without", "with")
    return _row(
        text,
        speech,
        "subtitle_vs_speech",
        f"the line stands {words[0]} a negation, the speech {words[1]} it; the speech is used",
    )


def _best_window(shown: tuple[str, ...], said: tuple[str, ...]) -> tuple[str, ...]:
    """The stretch of speech, as long as the line and one word more, that is most like it."""
    size = min(len(said), len(shown) + 1)
    wanted = set(shown)
    starts = range(len(said) - size + 1)
    best = max(starts, key=lambda s: sum(w in wanted for w in said[s : s + size]), default=0)
    return said[best : best + size]


def _backwards(edge: CausalEdge, events: EventsDocument) -> Contradiction | None:
    if edge.cause_event is None or edge.effect_event is None:
        return None
    cause, effect = (
        events.events[int(ref.split(":")[1])] for ref in (edge.cause_event, edge.effect_event)
    )
    if effect.span.start_s >= cause.span.start_s:
        return None
    return Contradiction(
        span=TimeSpan.from_seconds(
            effect.span.start_s, max(cause.span.end_s, effect.span.end_s), rate_hz=CLOCK_HZ
        ),
        fact_a=edge.cause_event,
        fact_b=edge.effect_event,
        contradiction_kind="effect_before_cause",
        resolution="the effect begins before its cause; no claim rests on this edge",
    )


def _cycle(ordinal: int, edge: CausalEdge, causes: CausesDocument) -> Contradiction | None:
    """The weaker of two opposite edges; the stronger one stays."""
    for m, other in enumerate(causes.edges):
        opposite = (other.cause_type, other.effect_type) == (edge.effect_type, edge.cause_type)
        if not opposite or m == ordinal or other.verdict != "causal":
            continue
        if edge.cause_type == edge.effect_type or (edge.cause_event is None) != (
            other.cause_event is None
        ):
            continue
        if _doubt(ordinal, edge) > _doubt(m, other):
            return Contradiction(
                span=edge.span,
                fact_a=f"edge:{m}",
                fact_b=f"edge:{ordinal}",
                contradiction_kind="causal_cycle",
                resolution=f"each is said to cause the other; edge:{m} has the lower q and stays",
            )
    return None


def _doubt(ordinal: int, edge: CausalEdge) -> tuple[float, float, int]:
    q_value = edge.q_value if edge.q_value is not None else 1.0
    return (q_value, -(edge.confidence or 0.0), ordinal)


def _row(a: EvidenceItem, b: EvidenceItem, kind: str, resolution: str) -> Contradiction:
    return Contradiction(
        span=TimeSpan.from_seconds(
            min(a.start_s, b.start_s), max(a.end_s, b.end_s), rate_hz=CLOCK_HZ
        ),
        fact_a=a.ref,
        fact_b=b.ref,
        contradiction_kind=kind,
        resolution=resolution,
    )
