"""State anchors: what a long video has established, and a guard that holds each step to it.

A long video is reasoned scene by scene. Every step starts from an anchor (session, hash of the
step before, version of the constraints, a short summary, who is who). The guard compares what a
step says with the anchor:

- two or more changes in who someone is or what they may do: the step has drifted, the last good
  anchor is taken again;
- times that run backwards or leave the scene: the claim is frozen and a clarifying question is
  put in its place.
"""

import hashlib
import json
from collections.abc import Iterable

from engines.contracts.base import Contract
from engines.contracts.reasoning import Anchor, EvidenceItem
from engines.prompts.untrusted import INSTRUCTION_LIKE
from engines.reasoning.evidence import kind_of, line_tokens
from engines.reasoning.tokens import estimate

CONSTRAINT_VERSION = "1"
"""Raised when a rule of the frame or of the guard changes its meaning."""
MAX_SUMMARY_TOKENS = 128
DRIFT_CHANGES = 2
TIME_TOLERANCE_S = 0.05
Roles = tuple[tuple[str, str], ...]


class StepClaim(Contract):
    """A dated statement of one step."""

    text: str
    start_s: float
    end_s: float
    cites: tuple[str, ...]


class Step(Contract):
    """What one scene's reasoning gave."""

    start_s: float
    end_s: float
    summary: str = ""
    """Used where the step has no claims of its own."""
    roles: Roles = ()
    claims: tuple[StepClaim, ...] = ()


class Frozen(Contract):
    """A claim whose times cannot hold, and the question that would settle it."""

    claim: StepClaim
    question: str
    reason: str


class Guarded(Contract):
    """A step after the guard: the anchor for the next one, and what was held back."""

    anchor: Anchor
    drift: tuple[str, ...] = ()
    """Changes that made the step roll back; empty when it was good."""
    frozen: tuple[Frozen, ...] = ()


def session_of(items: Iterable[EvidenceItem]) -> str:
    """Hash of the evidence: the same evidence is the same session."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(item.model_dump_json().encode())
    return digest.hexdigest()


def scenes(
    items: tuple[EvidenceItem, ...], max_tokens: int
) -> tuple[tuple[EvidenceItem, ...], ...]:
    """Cut the evidence into consecutive scenes that fit a budget, at shot boundaries if possible.

    Args:
        items: in time order.
        max_tokens: budget of one scene's lines.

    Returns:
        Every item once, in order; a scene is over the budget only where one item alone is.
    """
    found: list[list[EvidenceItem]] = [[]]
    used = 0
    boundary = 0
    for item in items:
        if kind_of(item.ref) == "shot":
            boundary = len(found[-1])
        cost = line_tokens(item)
        while found[-1] and used + cost > max_tokens:
            cut = boundary or len(found[-1])
            carried = found[-1][cut:]
            found[-1] = found[-1][:cut]
            found.append(carried)
            used = sum(line_tokens(i) for i in carried)
            boundary = 0
        found[-1].append(item)
        used += cost
    return tuple(tuple(scene) for scene in found if scene)


def shorten(summary: str, max_tokens: int = MAX_SUMMARY_TOKENS) -> str:
    """The longest run of leading words that fits the budget."""
    words = summary.split()
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate(" ".join(words[:middle])) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return " ".join(words[:low])


def step_by_rules(scene: tuple[EvidenceItem, ...]) -> Step:
    """A scene's step without a model: its most salient facts, and who speaks."""
    shown = sorted(scene, key=lambda i: (-i.saliency, i.start_s, i.ref))
    usable = [i for i in shown if INSTRUCTION_LIKE not in i.flags and kind_of(i.ref) != "keyframe"]
    words = "; ".join(f"{i.ref} {i.text}" for i in usable[:12])
    speakers = sorted({i.note.split(",")[0] for i in scene if i.note.startswith("speaker ")})
    return Step(
        start_s=min((i.start_s for i in scene), default=0.0),
        end_s=max((i.end_s for i in scene), default=0.0),
        summary=shorten(words),
        roles=tuple((f"{who}:is", "speaker") for who in speakers),
    )


def guard(previous: Anchor | None, step: Step, session: str) -> Guarded:
    """Hold a step to the anchor before it.

    Args:
        previous: the last good anchor; None before the first scene.
        step: what this scene's reasoning gave.
        session: from ``session_of``.

    Returns:
        The anchor for the next step. After drift it repeats the last good summary and roles,
        with ``rolled_back`` set.
    """
    known = dict(previous.roles) if previous else {}
    changes = tuple(
        f"{who}: {known[who]} became {value}"
        for who, value in step.roles
        if who in known and known[who] != value
    )
    frozen = tuple(f for claim in step.claims if (f := _frozen(claim, step)) is not None)
    number = previous.step + 1 if previous else 0
    if len(changes) >= DRIFT_CHANGES and previous is not None:
        anchor = _anchor(session, number, previous, step, previous.summary, previous.roles, True)
        return Guarded(anchor=anchor, drift=changes, frozen=frozen)
    roles = tuple(sorted({**known, **dict(step.roles)}.items()))
    held_back = {f.claim for f in frozen}
    said = " ".join(c.text for c in step.claims if c not in held_back) or step.summary
    anchor = _anchor(session, number, previous, step, shorten(said), roles, False)
    return Guarded(anchor=anchor, frozen=frozen)


def _frozen(claim: StepClaim, step: Step) -> Frozen | None:
    if claim.end_s < claim.start_s:
        reason = f"it ends at {claim.end_s:.2f} s, before it starts at {claim.start_s:.2f} s"
    elif (
        claim.start_s < step.start_s - TIME_TOLERANCE_S
        or claim.end_s > step.end_s + TIME_TOLERANCE_S
    ):
        reason = (
            f"{claim.start_s:.2f}-{claim.end_s:.2f} s leaves the scene "
            f"{step.start_s:.2f}-{step.end_s:.2f} s"
        )
    else:
        return None
    question = f"When does this happen, given {', '.join(claim.cites) or 'no cited fact'}?"
    return Frozen(claim=claim, question=question, reason=reason)


def _anchor(
    session: str,
    number: int,
    previous: Anchor | None,
    step: Step,
    summary: str,
    roles: Roles,
    rolled_back: bool,
) -> Anchor:
    previous_hash = previous.anchor_id if previous else ""
    content = [
        session,
        number,
        previous_hash,
        CONSTRAINT_VERSION,
        step.start_s,
        step.end_s,
        summary,
        [list(r) for r in roles],
        rolled_back,
    ]
    return Anchor(
        anchor_id=hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32],
        session=session,
        step=number,
        previous_hash=previous_hash,
        constraint_version=CONSTRAINT_VERSION,
        start_s=step.start_s,
        end_s=step.end_s,
        summary=summary,
        roles=roles,
        rolled_back=rolled_back,
    )
