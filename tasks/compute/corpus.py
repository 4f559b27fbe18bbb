"""part, mine_corpus: one video's contribution to a corpus, and the pooling of all; model child."""

from engines.causal.corpus import PartFile, mine_parts, video_part
from engines.causal.miner import own_span
from engines.causal.series import VideoEvents
from engines.contracts.causal import (
    CausesDocument,
    EventsDocument,
    MinerParams,
    PartDocument,
    PartParams,
)
from tasks.compute.call import StageCall

PART = "part.zip"


def part(call: StageCall[PartParams]) -> PartDocument:
    """Events and lag counts of one video."""
    timeline = call.document("events", EventsDocument)
    spans = [(s.start_s, s.end_s) for s in timeline.observed] or own_span(timeline.events)
    made = video_part(
        VideoEvents("", timeline.events, spans, timeline.coverage.skipped_s), call.params
    )
    made.write(call.work_dir / PART)
    return PartDocument(
        coverage=timeline.coverage,
        num_events=len(made.times.time),
        num_types=len(made.times.names),
        copies=made.null.copies,
    )


def mine_corpus(call: StageCall[MinerParams]) -> CausesDocument:
    """Which types of event cause which over all videos; each input is the part of one."""
    parts = [PartFile(video=name, path=path) for name, path in sorted(call.inputs.items())]
    return mine_parts(parts, call.params)
