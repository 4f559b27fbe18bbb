"""A long video scene by scene: one anchor per step, held by the guard."""

from dataclasses import dataclass, field

from engines.contracts.reasoning import Anchor, Answer, Contradiction, EvidenceItem, ReasonParams
from engines.contracts.time import TimeSpan
from engines.prompts.untrusted import instruction_like
from engines.reasoning.anchors import (
    Frozen,
    Guarded,
    Step,
    StepClaim,
    guard,
    scenes,
    session_of,
    step_by_rules,
)
from engines.reasoning.answers import by_rules
from engines.reasoning.asking import Asker
from engines.reasoning.chat import Spent
from engines.reasoning.contradictions import CLOCK_HZ
from engines.reasoning.replies import SceneReply
from engines.reasoning.rules.case import Case, Claim

MAX_MODEL_SCENES = 24
"""More scenes than this are stepped by rules: a question for each would cost more than it tells."""


@dataclass
class Stepped:
    """Anchors of all scenes, and what the guard held back."""

    anchors: tuple[Anchor, ...] = ()
    questions: list[Answer] = field(default_factory=list)
    """Clarifying questions in place of frozen claims."""
    contradictions: list[Contradiction] = field(default_factory=list)
    failures: dict[str, list[str]] = field(default_factory=dict)
    """Why a scene was stepped by rules, with the scenes."""
    notes: list[str] = field(default_factory=list)
    """What else was weaker than it should be, in whole sentences."""
    passing: bool = False
    give_up: str | None = None


def step_through(case: Case, params: ReasonParams, asker: Asker | None) -> Stepped:
    """Walk the scenes of the evidence, each step starting from the last good anchor.

    A video that fits one prompt has one scene, stepped by rules: the questions themselves see
    all of it. A longer one is stepped by the model, if there is one.
    """
    cut = scenes(case.evidence, params.max_input_tokens)
    session = session_of(case.evidence)
    out = Stepped()
    previous: Anchor | None = None
    by_model = asker is not None and 1 < len(cut) <= MAX_MODEL_SCENES
    for n, items in enumerate(cut):
        step, spent = None, Spent()
        if asker is not None and by_model and out.give_up is None:
            step, spent = _ask_step(asker, items, (n + 1, len(cut)), previous, out)
        guarded = guard(previous, step or step_by_rules(items), session)
        previous = guarded.anchor
        out.anchors = (*out.anchors, guarded.anchor)
        _hold_back(case, guarded, out, spent)
    return out


def _ask_step(
    asker: Asker,
    items: tuple[EvidenceItem, ...],
    place: tuple[int, int],
    previous: Anchor | None,
    out: Stepped,
) -> tuple[Step | None, Spent]:
    reply, asked = asker.scene(items, place[0], place[1], previous)
    if asked.failure is not None:
        out.failures.setdefault(asked.failure, []).append(f"scene {place[0]}")
        out.passing = out.passing or asked.passing
        out.give_up = asked.failure if asked.stop_asking else None
    return (_step(reply, items) if reply is not None and reply.claims else None), asked.spent


def _step(reply: SceneReply, items: tuple[EvidenceItem, ...]) -> Step:
    return Step(
        start_s=min(i.start_s for i in items),
        end_s=max(i.end_s for i in items),
        roles=tuple(
            (f"{r.who}:{r.aspect}", r.value)
            for r in reply.roles
            if not instruction_like(f"{r.who} {r.value}")
        ),
        claims=tuple(
            StepClaim(text=c.text, start_s=c.start_s, end_s=c.end_s, cites=tuple(c.cites))
            for c in reply.claims
        ),
    )


def _hold_back(case: Case, guarded: Guarded, out: Stepped, spent: Spent) -> None:
    """Rows for what the guard froze or rolled back; nothing is dropped in silence."""
    for frozen in guarded.frozen:
        out.questions.append(_question(case, guarded, frozen, spent))
        spent = Spent()
        out.contradictions += _frozen_row(case, frozen)
    if guarded.drift:
        out.notes.append(
            f"scene {guarded.anchor.step + 1} drifted ({len(guarded.drift)} changes in who someone "
            "is or what they may do) and was rolled back to the last good anchor"
        )


def _question(case: Case, guarded: Guarded, frozen: Frozen, spent: Spent) -> Answer:
    claim = Claim(
        answer_kind="consistent",
        question=frozen.question,
        text=f"A claim was frozen: {frozen.reason}. {frozen.question}",
        cites=case.citable(frozen.claim.cites),
        start_s=guarded.anchor.start_s,
        end_s=guarded.anchor.end_s,
        answer={"outcome": "question", "reason": frozen.reason, "question": frozen.question},
    )
    return by_rules(case, claim, "rejected", guarded.anchor, spent)


def _frozen_row(case: Case, frozen: Frozen) -> list[Contradiction]:
    """A ledger row where the frozen claim joins two facts; one fact has nobody to contradict."""
    refs = case.citable(frozen.claim.cites)
    if len(refs) < 2:  # noqa: PLR2004 - a contradiction has two sides
        return []
    a, b = case.by_ref[refs[0]], case.by_ref[refs[1]]
    return [
        Contradiction(
            span=TimeSpan.from_seconds(
                min(a.start_s, b.start_s), max(a.end_s, b.end_s), rate_hz=CLOCK_HZ
            ),
            fact_a=a.ref,
            fact_b=b.ref,
            contradiction_kind="claim_time",
            resolution=f"the claim over both is frozen: {frozen.reason}",
        )
    ]
