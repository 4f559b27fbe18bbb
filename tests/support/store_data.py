"""Documents and runs for tests of the store: a small asset with one fact of every kind."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
from sqlalchemy import Engine, text

from engines.contracts.actions import Action, ActionsDocument
from engines.contracts.base import Coverage, StageDocument
from engines.contracts.causal import CausalEdge, CausesDocument, Event, EventsDocument
from engines.contracts.media import (
    AudioStream,
    Keyframe,
    MediaInfo,
    MediaProbe,
    SampleDocument,
    Shot,
    ShotsDocument,
    VideoStream,
)
from engines.contracts.reasoning import Answer, Contradiction, ReasonDocument
from engines.contracts.speech import ListenDocument, Utterance, Word
from engines.contracts.time import TimeSpan
from engines.contracts.vision import (
    Alignment,
    Box,
    EmbeddedSample,
    EmbedDocument,
    Label,
    TextDocument,
    TextLine,
)
from tasks.store import results, runs, videos
from tasks.store.artifacts import ArtifactRow
from tasks.store.publish import Embeddings, PublishRequest, PublishResult, publish
from tasks.store.rows import Source

COVERED = Coverage(covered_s=9.0, skipped_s=1.0, trust=0.9, reason="one second was damaged")
WEIGHTS = hashlib.sha256(b"weights").hexdigest()
PROMPT_HASH = hashlib.sha256(b"why@1").hexdigest()


def digest(text: str) -> str:
    """A SHA-256 that stands for ``text``."""
    return hashlib.sha256(text.encode()).hexdigest()


def span(start_s: float, end_s: float) -> TimeSpan:
    """A span in 1/90000 s."""
    return TimeSpan.from_seconds(start_s, end_s, rate_hz=90_000)


def sample_document() -> SampleDocument:
    """A picture stream in 1/90000 s and a sound stream."""
    return SampleDocument(
        coverage=COVERED,
        media=MediaInfo(
            kind="video", container="mp4", declared_duration_s=10.0, duration_s=10.0, start_s=0.0
        ),
        video=VideoStream(
            stream_index=0,
            codec="h264",
            width=640,
            height=360,
            rotation_deg=0,
            coded_width=640,
            coded_height=360,
            frames_declared=250,
            frames_decoded=225,
            first_pts=0,
            last_pts=899_000,
            time_base_num=1,
            time_base_den=90_000,
            variable_rate=False,
            pixel_format="yuv420p",
            hdr=None,
        ),
        audio=AudioStream(
            stream_index=1,
            codec="aac",
            sample_rate_hz=48_000,
            channels=2,
            start_s=0.0,
            duration_s=10.0,
        ),
        time_base_num=1,
        time_base_den=90_000,
        samples=(),
        sample_step_s=1.0,
        signal_names=(),
        verdict="partial",
    )


def probe_document() -> MediaProbe:
    """As the sample document, before decoding."""
    sample = sample_document()
    return MediaProbe(
        coverage=COVERED, media=sample.media, video=sample.video, audio=sample.audio, num_streams=2
    )


def shots_document() -> ShotsDocument:
    """Two shots with a keyframe each."""
    return ShotsDocument(
        coverage=COVERED,
        shots=(
            Shot(span=span(0, 4), start_frame=0, end_frame=100, method="start", score=1.0),
            Shot(span=span(4, 10), start_frame=100, end_frame=250, method="cut", score=0.8),
        ),
        keyframes=tuple(
            Keyframe(
                span=span(at, at + 0.04),
                shot_ordinal=i,
                frame=round(at * 25),
                sample_name=f"{i:06d}.jpg",
                reason="sharpest",
                energy=0.3,
            )
            for i, at in enumerate((2.0, 6.0))
        ),
    )


def embed_document() -> EmbedDocument:
    """One label and two embedded samples of four dimensions."""
    return EmbedDocument(
        coverage=COVERED,
        labels=(
            Label(span=span(0, 4), label="lighthouse", score=0.9, vocabulary="t", model="net"),
        ),
        alignments=(
            Alignment(
                label="label:0",
                sample_name="000000.jpg",
                box=Box(x=0.25, y=0.5, w=0.25, h=0.125),
                entropy=0.75,
            ),
        ),
        embedded=(
            EmbeddedSample(sample_name="000000.jpg", pts=180_000),
            EmbeddedSample(sample_name="000001.jpg", pts=540_000),
        ),
        dimension=4,
        model="net",
    )


def vectors() -> np.ndarray:
    """Unit vectors for the embedded samples."""
    return np.array([[1, 0, 0, 0], [0.6, 0.8, 0, 0]], dtype=np.float32)


def listen_document(text: str = "ask not what your country can do for you") -> ListenDocument:
    """One utterance with a word per word, and one sound."""
    words = text.split()
    return ListenDocument(
        coverage=COVERED,
        utterances=(
            Utterance(
                span=span(1, 5),
                text=text,
                language="en",
                confidence=0.9,
                trust=0.8,
                no_speech_probability=0.01,
                words=tuple(
                    Word(span=span(1 + i * 0.3, 1.2 + i * 0.3), text=word, confidence=0.8)
                    for i, word in enumerate(words)
                ),
            ),
        ),
        sounds=(
            Label(span=span(6, 6.5), label="bang", score=0.7, vocabulary="sound", model="onset"),
        ),
        model="whisper",
    )


def text_document() -> TextDocument:
    """One line on the screen."""
    return TextDocument(
        coverage=COVERED,
        texts=(
            TextLine(
                span=span(2, 8),
                text="EXIT 42",
                confidence=0.95,
                box=Box(x=0.1, y=0.2, w=0.3, h=0.05),
                flags=("cleaned:text",),
            ),
        ),
        model="rapidocr",
    )


def actions_document() -> ActionsDocument:
    """A macro action that holds a micro one."""
    return ActionsDocument(
        coverage=COVERED,
        actions=(
            Action(span=span(0, 9), granularity="macro", label="cook", score=0.8),
            Action(
                span=span(1, 2),
                granularity="micro",
                label="stir",
                score=0.7,
                keyframe_pts=(90_000, 2_268_000_000),
                parent="action:0",
                person_track="p1",
            ),
        ),
        model="pose",
    )


def events_document() -> EventsDocument:
    """Three events over speech, sound and text."""
    described = (
        ("speech:says", "speech", "a man speaks", 1.0, ("utterance:0", "word:1")),
        ("sound:bang", "sound", "a bang is heard", 6.0, ("sound:0",)),
        ("text:appears", "text", "EXIT 42 appears", 8.0, ("text:0", "label:0")),
    )
    return EventsDocument(
        coverage=COVERED,
        events=tuple(
            Event(
                span=span(at, at + 0.5),
                type=kind,
                subject=None,
                description=description,
                source=source,
                evidence=evidence,
            )
            for kind, source, description, at, evidence in described
        ),
    )


def edge(cause: int, effect: int, **changes: object) -> CausalEdge:
    """An edge between two of the events."""
    events = events_document().events
    fields: dict[str, object] = {
        "span": TimeSpan(
            start_pts=events[cause].span.start_pts,
            end_pts=events[effect].span.end_pts,
            time_base_num=1,
            time_base_den=90_000,
        ),
        "cause_type": events[cause].type,
        "effect_type": events[effect].type,
        "cause_event": f"event:{cause}",
        "effect_event": f"event:{effect}",
        "lag_s": 2.0,
        "cooccurrences": 7,
        "strength": 0.4,
        "p_value": 0.01,
        "q_value": 0.02,
        "test": "rcit",
        "effective_n": 20.0,
        "counterfactual_delta": 0.3,
        "delta_low": 0.1,
        "delta_high": 0.5,
        "confidence": 0.8,
        "placebo_rate": 0.02,
        "verdict": "causal",
        "reason": "7 co-occurrences",
    }
    return CausalEdge.model_validate(fields | changes)


def causes_document(edges: tuple[CausalEdge, ...] | None = None) -> CausesDocument:
    """Speech causes the bang causes the text; one pair had too little."""
    if edges is None:
        edges = (
            edge(0, 1),
            edge(1, 2, confidence=0.5),
            edge(0, 2, verdict="insufficient_evidence", confidence=None, reason="3 of 5 needed"),
        )
    return CausesDocument(
        coverage=COVERED,
        edges=edges,
        verdict="edges" if edges else "insufficient_evidence",
        reason="3 events, at least 12 needed",
        num_events=3,
        effective_n=3.0,
        placebo_rate=0.02,
    )


def reason_document() -> ReasonDocument:
    """One answer that cites speech and an edge, and one contradiction."""
    return ReasonDocument(
        coverage=COVERED,
        answers=(
            Answer(
                span=span(1, 8),
                task="why",
                answer_kind="why",
                question="Why does the sign appear?",
                answer={"cause": "a bang", "steps": [1, 2]},
                claim="The sign appears because of the bang",
                cites=("utterance:0", "edge:1", "utterance:0"),
                verdict="accepted",
                engine="extractive",
                model="rules",
                prompt="why@1",
                prompt_hash=PROMPT_HASH,
                input_tokens=0,
                output_tokens=0,
                anchor_id=None,
            ),
        ),
        contradictions=(
            Contradiction(
                span=span(2, 5),
                fact_a="utterance:0",
                fact_b="text:0",
                contradiction_kind="speech_text",
                resolution="text kept",
            ),
        ),
        engine="extractive",
        model="rules",
    )


DOCUMENTS: dict[str, StageDocument] = {
    "probe": probe_document(),
    "sample": sample_document(),
    "shots": shots_document(),
    "embed": embed_document(),
    "listen": listen_document(),
    "read_text": text_document(),
    "actions": actions_document(),
    "events": events_document(),
    "causes": causes_document(),
    "reason": reason_document(),
}

INPUTS: dict[str, tuple[str, ...]] = {
    "probe": ("content",),
    "sample": ("content", "probe"),
    "shots": ("sample",),
    "embed": ("sample",),
    "listen": ("sample",),
    "read_text": ("sample",),
    "actions": ("sample",),
    "events": ("shots", "embed", "listen", "read_text", "actions"),
    "causes": ("events",),
    "reason": ("events", "causes", "listen", "read_text"),
}


@dataclass
class Pipeline:
    """Runs the stages of one asset against the store, computing nothing."""

    engine: Engine
    bucket: str = "videos"
    key: str = "a b+c%20é🎬.mp4"
    content: str = "bytes"
    etag: str = "e1"
    modified_at: datetime | None = datetime(2026, 1, 1, tzinfo=UTC)

    def start(self) -> tuple[UUID, UUID]:
        """Begin a run; its id and the video's."""
        video_id = videos.ensure_video(self.engine, self.bucket, self.key)
        run_id = runs.start_run(
            self.engine, video_id, recipe_hash=digest("recipe"), code_version="0.1.0"
        )
        videos.record_content(
            self.engine,
            videos.ObjectContent(
                bucket=self.bucket,
                key=self.key,
                etag=self.etag,
                version_id=None,
                size_bytes=3_221_225_472,
                sha256=digest(self.content),
                modified_at=self.modified_at,
            ),
            run_id=run_id,
        )
        return run_id, video_id

    def stage(self, run_id: UUID, stage: str, document: StageDocument, inputs: dict[str, str]):
        """One stage: the stored result under its key, else a new one."""
        body = document.model_dump_json()
        document_sha256 = digest(stage + body)
        key = digest(f"{stage}{body}{sorted(inputs.items())}")
        identity = runs.StageIdentity(
            stage=stage, code_version="c1", engine=f"{stage}-engine", model=f"{stage}-net",
            model_revision=WEIGHTS, device="cpu", pool="cpu",
        )  # fmt: skip
        stage_run_id = runs.start_stage_run(self.engine, run_id, identity, cache_key=key)
        found = results.find_result(self.engine, key)
        if found is not None:
            outcome = runs.StageOutcome(status="cached", produced_by=found.stage_run_id)
            runs.finish_stage_run(self.engine, stage_run_id, outcome)
            return found
        lease = results.acquire_lease(self.engine, key, lease_s=30)
        assert lease is not None
        recipe = {
            "stage": stage, "code_version": "c1", "engine": f"{stage}-engine",
            "model": f"{stage}-net", "model_revision": WEIGHTS, "params": {"seed": 0},
            "prompts": {"why@1": PROMPT_HASH} if stage == "reason" else {},
        }  # fmt: skip
        found = results.store_result(
            self.engine,
            lease,
            stage=stage,
            stage_run_id=stage_run_id,
            recipe=recipe,
            inputs=inputs,
            document=ArtifactRow(
                sha256=document_sha256, uri=f"s3://a/{document_sha256}", size_bytes=len(body),
                kind="application/json",
            ),
            blobs={},
        )  # fmt: skip
        outcome = runs.StageOutcome(
            status="done", seconds=1.5, cpu_seconds=2.5, peak_rss_bytes=5_000_000_000
        )
        runs.finish_stage_run(self.engine, stage_run_id, outcome)
        return found

    def request(self, **changed: StageDocument | None) -> PublishRequest:
        """Run every stage and gather what is to be published; None leaves a stage out."""
        run_id, video_id = self.start()
        hashes = {"content": digest(self.content)}
        sources = []
        for stage, usual in DOCUMENTS.items():
            document = changed.get(stage, usual)
            if document is None:
                continue
            inputs = {name: hashes[name] for name in INPUTS[stage] if name in hashes}
            result = self.stage(run_id, stage, document, inputs)
            hashes[stage] = result.document_sha256
            sources.append(Source(stage, result.cache_key, result.stage_run_id, document))
        return PublishRequest(
            run_id=run_id,
            video_id=video_id,
            sources=tuple(sources),
            image_uris={"000000.jpg": "s3://a/0.jpg"},
            embeddings=Embeddings(vectors(), WEIGHTS) if changed.get("embed", 1) else None,
        )

    def publish(self, **changed: StageDocument | None) -> PublishResult:
        """Run, publish, and finish."""
        request = self.request(**changed)
        result = publish(self.engine, request)
        runs.finish_run(self.engine, request.run_id, "done")
        return result


def rows(engine: Engine, statement: str, **parameters: object) -> list[dict[str, object]]:
    """All rows of a query, as dictionaries."""
    with engine.connect() as connection:
        found = connection.execute(text(statement), parameters)
        return [dict(row._mapping) for row in found]


def value(engine: Engine, statement: str, **parameters: object) -> object:
    """The one value of a query."""
    with engine.connect() as connection:
        return connection.execute(text(statement), parameters).scalar_one()
