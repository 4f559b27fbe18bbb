"""Chapters: spans that a viewer can jump to, from shots, pauses and topics.

Source of the idea: TextTiling (Hearst, 1997), a boundary stands where the vocabulary of two
neighbouring blocks differs. Blocks are shots, or where there is no picture, stretches of speech
between pauses; the most alike neighbours are joined until no chapter is too short, too like its
neighbour, or one too many.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from pydantic import JsonValue

from engines.contracts.reasoning import EvidenceItem
from engines.prompts.normalise import terms
from engines.prompts.untrusted import INSTRUCTION_LIKE
from engines.reasoning.evidence import kind_of
from engines.reasoning.rules.case import Case, Claim, quote, sentence

MAX_CHAPTERS = 20
MIN_CHAPTER_S = 2.0
MIN_SHARE = 1 / 24
"""No chapter is shorter than this share of the video."""
SIMILAR = 0.35
"""Neighbours at least so alike (cosine of their terms) are one topic."""
PAUSE_S = 2.0
TITLE_TERMS = 3
_CITES_PER_CHAPTER = 6
_TOPIC_KINDS = frozenset({"utterance", "text", "label", "action"})


@dataclass
class _Block:
    start_s: float
    end_s: float
    refs: list[str]
    topic: Counter[str]

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s


def chapters(case: Case) -> tuple[Claim, ...]:
    """One claim per chapter; its span is the chapter's."""
    question = "What are its chapters?"
    blocks = _blocks(case)
    if not blocks:
        reason = "0 shots and 0 utterances, at least 1 needed"
        answer: dict[str, JsonValue] = {"outcome": "not_enough_evidence", "reason": reason}
        text = f"Not enough evidence: {reason}."
        return (case.claim("chapters", question, text, (), answer),)
    joined = _join(blocks, max(MIN_CHAPTER_S, MIN_SHARE * (case.end_s - case.start_s)))
    spread = Counter(t for block in joined for t in set(block.topic))
    return tuple(
        _claim(case, question, n, block, len(joined), spread) for n, block in enumerate(joined)
    )


def _blocks(case: Case) -> list[_Block]:
    shots = case.of("shot")
    if shots:
        blocks = [_Block(s.start_s, s.end_s, [s.ref], Counter()) for s in shots]
    else:
        blocks = _speech_blocks(case)
    starts = [b.start_s for b in blocks]
    for item in case.evidence:
        if kind_of(item.ref) not in _TOPIC_KINDS or INSTRUCTION_LIKE in item.flags:
            continue
        words = terms(item.text)
        first = max(0, bisect_right(starts, item.start_s) - 1)
        for block in blocks[first : bisect_left(starts, item.end_s)]:
            if item.start_s < block.end_s:
                block.topic.update(words)
                block.refs.append(item.ref)
    return blocks


def _speech_blocks(case: Case) -> list[_Block]:
    """Stretches of speech between pauses; each block reaches to where the next begins."""
    starts: list[EvidenceItem] = []
    end_s = -math.inf
    for item in case.of("utterance"):
        if item.start_s - end_s >= PAUSE_S:
            starts.append(item)
        end_s = max(end_s, item.end_s)
    if not starts:
        return []
    begins = [case.start_s, *(s.start_s for s in starts[1:])]
    ends = [*begins[1:], case.end_s]
    return [_Block(b, e, [s.ref], Counter()) for b, e, s in zip(begins, ends, starts, strict=True)]


def _join(blocks: list[_Block], min_length_s: float) -> list[_Block]:
    """Join neighbours until every chapter is long enough, distinct, and they are few."""
    joined = list(blocks)
    alike = [_similarity(a, b) for a, b in pairwise(joined)]
    while len(joined) > 1:
        shortest = min(range(len(joined)), key=lambda n: joined[n].length_s)
        closest = max(range(len(alike)), key=alike.__getitem__)
        if joined[shortest].length_s < min_length_s:
            left = _neighbour(joined, alike, shortest)
        elif len(joined) > MAX_CHAPTERS or alike[closest] >= SIMILAR:
            left = closest
        else:
            break
        a, b = joined[left], joined.pop(left + 1)
        joined[left] = _Block(
            a.start_s,
            b.end_s,
            list(dict.fromkeys([*a.refs, *b.refs])),
            a.topic + b.topic,
        )
        alike.pop(left)
        for n in (left - 1, left):
            if 0 <= n < len(alike):
                alike[n] = _similarity(joined[n], joined[n + 1])
    return joined


def _neighbour(joined: list[_Block], alike: list[float], n: int) -> int:
    """The left one of the pair that block ``n`` joins: with whom it is most alike.

    Between equals the shorter neighbour, so that what says nothing does not pile up in one.
    """
    pairs = [left for left in (n - 1, n) if 0 <= left < len(alike)]
    return min(pairs, key=lambda left: (-alike[left], joined[2 * left + 1 - n].length_s))


def _similarity(a: _Block, b: _Block) -> float:
    """Cosine of the two blocks' term counts; 0 where either says nothing."""
    dot = sum(count * b.topic[term] for term, count in a.topic.items())
    norms = math.sqrt(sum(c * c for c in a.topic.values()) * sum(c * c for c in b.topic.values()))
    return dot / norms if norms else 0.0


def _claim(  # the spread of terms over chapters decides which of them tell this one apart
    case: Case, question: str, number: int, block: _Block, count: int, spread: Counter[str]
) -> Claim:
    title, top = _title(case, number, block, spread)
    cites = case.citable(block.refs)[:_CITES_PER_CHAPTER]
    answer: dict[str, JsonValue] = {
        "outcome": "answered",
        "chapter": number + 1,
        "chapters": count,
        "start_s": round(block.start_s, 3),
        "end_s": round(block.end_s, 3),
        "terms": list(top),
    }
    return Claim(
        answer_kind="chapters",
        question=question,
        text=sentence(title),
        cites=cites,
        start_s=block.start_s,
        end_s=block.end_s,
        answer=answer,
    )


def _title(
    case: Case, number: int, block: _Block, spread: Counter[str]
) -> tuple[str, tuple[str, ...]]:
    """A line of text shown early in the chapter, or the terms that tell it from the others."""
    weight = {t: c / spread[t] for t, c in block.topic.items()}
    top = tuple(sorted(weight, key=lambda t: (-weight[t], t))[:TITLE_TERMS])
    shown = [
        i
        for i in case.of("text")
        if INSTRUCTION_LIKE not in i.flags
        and block.start_s <= i.start_s < block.start_s + max(MIN_CHAPTER_S, block.length_s / 4)
        and terms(i.text)
    ]
    if shown:
        best = max(shown, key=lambda i: (i.saliency, -i.start_s))
        return f"chapter {number + 1}, {quote(best, 60)}", top
    if top:
        return f"chapter {number + 1}, about {', '.join(top)}", top
    return f"chapter {number + 1}", top
