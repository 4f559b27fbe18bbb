"""events, causes, reason: run in the model child."""

from contextlib import ExitStack

import numpy as np

from engines.causal.miner import mine
from engines.causal.signals import MotionSignals
from engines.causal.timeline import fuse
from engines.contracts.actions import ActionsDocument
from engines.contracts.causal import (
    CausesDocument,
    EventsDocument,
    MinerParams,
    TimelineParams,
)
from engines.contracts.media import SampleDocument, ShotsDocument
from engines.contracts.reasoning import ReasonDocument, ReasonParams
from engines.contracts.speech import ListenDocument
from engines.contracts.vision import EmbedDocument, TextDocument
from engines.reasoning.evidence import build
from engines.reasoning.openai_client import OpenAIClient
from engines.reasoning.pacing import Pacer
from engines.reasoning.reason import reason as answer
from tasks.compute.call import StageCall
from tasks.settings import get_settings

ANSWERS_DEADLINE_S = 1800.0
"""In which all questions of a video must be answered; rules answer what is left then."""


def events(call: StageCall[TimelineParams]) -> EventsDocument:
    """All facts on one typed timeline."""
    sampled = call.document("sample", SampleDocument)
    return fuse(
        sample=sampled,
        motion=_motion(call, sampled),
        shots=call.optional("shots", ShotsDocument),
        embed=call.optional("embed", EmbedDocument),
        listen=call.optional("listen", ListenDocument),
        texts=call.optional("read_text", TextDocument),
        actions=call.optional("actions", ActionsDocument),
        params=call.params,
    )


def _motion(call: StageCall[TimelineParams], sampled: SampleDocument) -> MotionSignals | None:
    if "signals.npy" not in call.inputs:
        return None
    return MotionSignals(
        values=np.load(call.inputs["signals.npy"]),
        pts=np.load(call.inputs["pts.npy"]),
        names=sampled.signal_names,
        time_base_s=sampled.time_base_num / sampled.time_base_den,
    )


def causes(call: StageCall[MinerParams]) -> CausesDocument:
    """Which types of event cause which, or how much evidence was missing."""
    timeline = call.document("events", EventsDocument)
    return mine(timeline.events, timeline.observed, call.params)


def reason(call: StageCall[ReasonParams]) -> ReasonDocument:
    """Answers over the evidence, each claim citing facts."""
    timeline = call.document("events", EventsDocument)
    mined = call.document("causes", CausesDocument)
    evidence = build(
        shots=call.optional("shots", ShotsDocument),
        listen=call.optional("listen", ListenDocument),
        texts=call.optional("read_text", TextDocument),
        embed=call.optional("embed", EmbedDocument),
        actions=call.optional("actions", ActionsDocument),
        events=timeline,
        causes=mined,
    )
    with ExitStack() as stack:
        client = stack.enter_context(_client(call)) if call.params.engine == "openai" else None
        return answer(evidence, mined, timeline, call.params, client, deadline_s=ANSWERS_DEADLINE_S)


def _client(call: StageCall[ReasonParams]) -> OpenAIClient:
    """The language model that the settings name; its key is read here and travels nowhere."""
    settings = get_settings()
    pace = call.cache_dir / "llm-pace.json"
    pace.parent.mkdir(parents=True, exist_ok=True)
    return OpenAIClient(
        settings.llm_base_url or "",
        call.params.model,
        api_key=settings.llm_api_key,
        structured_output=call.params.structured_output,
        pacer=Pacer(pace),
    )
