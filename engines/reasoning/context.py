"""Dynamic context anchoring: when, who and what of a question, and that part of the event graph."""

from engines.contracts.base import Contract
from engines.contracts.reasoning import EvidenceItem
from engines.prompts.untrusted import INSTRUCTION_LIKE
from engines.reasoning.rules.case import Case, readable
from engines.reasoning.rules.links import links

LAST_EVENTS = 6
_MIN_WINDOW_S = 5.0
_WINDOW_SHARE = 0.25


class Subgraph(Contract):
    """The anchors of a question and the facts around them."""

    when: str
    who: str
    what: str
    items: tuple[EvidenceItem, ...]


def subgraph(case: Case, shown: set[str]) -> Subgraph:
    """What comes last in the video, and the tested edges that start from it.

    Args:
        case: the evidence of one video.
        shown: refs that the prompt already holds; only those may be cited.

    Returns:
        The last events (when), their subjects (who), their types and the edges that leave those
        types (what). Empty items where the video has no events.
    """
    window_s = max(_MIN_WINDOW_S, _WINDOW_SHARE * (case.end_s - case.start_s))
    since_s = max(case.start_s, case.end_s - window_s)
    events = [
        i
        for i in case.of("event")
        if i.ref in shown and i.end_s >= since_s and INSTRUCTION_LIKE not in i.flags
    ]
    last = events[-LAST_EVENTS:]
    types = {case.event(i.ref).type for i in last}
    subjects = sorted({s for i in last if (s := case.event(i.ref).subject)})
    edges = [x for x in links(case) if x.edge.cause_type in types and x.edge_ref in shown]
    cited = [case.by_ref[x.edge_ref] for x in edges]
    return Subgraph(
        when=f"{since_s:.2f}-{case.end_s:.2f} s, the end of the video",
        who=", ".join(subjects) or "nobody in particular",
        what=", ".join(readable(t) for t in sorted(types)) or "no events",
        items=(*last, *cited),
    )
