"""Documents into rows: the one place that knows which table shows which fact of which document.

Facts cite each other by kind and ordinal (``utterance:3``); here a reference becomes the uuid
that the cited fact has in this asset.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Table

from engines.contracts.actions import ActionsDocument
from engines.contracts.base import Fact, FactKind, FactRef, StageDocument
from engines.contracts.causal import CausesDocument, EdgeExample, EventsDocument
from engines.contracts.media import ShotsDocument
from engines.contracts.reasoning import ReasonDocument
from engines.contracts.speech import ListenDocument, Utterance, Word
from engines.contracts.time import TimeSpan
from engines.contracts.vision import Alignment, Box, EmbedDocument, TextDocument
from engines.errors import EngineError
from tasks.store import fact_tables as ft
from tasks.store.corpora import Timeline
from tasks.store.ids import fact_id_of

Row = dict[str, object]
Rows = dict[Table, list[Row]]

ABSTENTION = "*"
"""Cause and effect of the one edge that stands for "too little to say anything"."""

FACT_TABLES: tuple[Table, ...] = (
    ft.shots,
    ft.keyframes,
    ft.labels,
    ft.utterances,
    ft.words,
    ft.texts,
    ft.actions,
    ft.events,
    ft.causal_edges,
    ft.answers,
    ft.contradictions,
    ft.coverage,
    ft.embeddings,
)
"""Everything that a publication may replace."""


@dataclass(frozen=True)
class Source:
    """A document on its way into tables."""

    stage: str
    cache_key: str
    stage_run_id: UUID
    document: StageDocument
    members: Mapping[str, Timeline] = field(default_factory=dict)
    """Events document -> the video that it stands for; for what is said of a whole corpus."""


def fact_counts(document: StageDocument) -> dict[FactKind, int]:
    """Which kinds of fact a document makes, and how many: what ``kind:ordinal`` may name.

    Shots and keyframes come from ShotsDocument; ``label`` from EmbedDocument; utterances, words
    (numbered through all utterances) and ``sound`` from ListenDocument; texts from TextDocument;
    actions, events and edges from theirs; answers and contradictions from ReasonDocument.
    """
    match document:
        case ShotsDocument():
            return {"shot": len(document.shots), "keyframe": len(document.keyframes)}
        case EmbedDocument():
            return {"label": len(document.labels)}
        case ListenDocument():
            num_words = sum(len(utterance.words) for utterance in document.utterances)
            return {
                "utterance": len(document.utterances),
                "word": num_words,
                "sound": len(document.sounds),
            }
        case TextDocument():
            return {"text": len(document.texts)}
        case ActionsDocument():
            return {"action": len(document.actions)}
        case EventsDocument():
            return {"event": len(document.events)}
        case CausesDocument():
            return {"edge": len(document.edges)}
        case ReasonDocument():
            return {
                "answer": len(document.answers),
                "contradiction": len(document.contradictions),
            }
        case _:
            return {}


@dataclass(frozen=True)
class FactIds:
    """Turns references into the uuids of one asset's facts."""

    video_id: UUID
    cache_keys: Mapping[str, str]
    """Kind -> cache key of the stage that made it."""
    counts: Mapping[str, int]

    @classmethod
    def of(cls, video_id: UUID, sources: Iterable[Source]) -> "FactIds":
        """Collect what may be cited.

        Raises:
            EngineError: two documents make the same kind of fact.
        """
        cache_keys: dict[str, str] = {}
        counts: dict[str, int] = {}
        for source in sources:
            for kind, count in fact_counts(source.document).items():
                if kind in cache_keys:
                    msg = f"two documents make facts of kind {kind!r}; one is {source.stage!r}"
                    raise EngineError(msg)
                cache_keys[kind], counts[kind] = source.cache_key, count
        return cls(video_id, cache_keys, counts)

    def resolve(self, ref: FactRef) -> UUID:
        """The uuid of a cited fact.

        Raises:
            EngineError: no document published here has such a fact.
        """
        kind, _, number = ref.partition(":")
        if int(number) >= self.counts.get(kind, 0):
            msg = f"a fact cites {ref!r}, which no published document holds"
            raise EngineError(msg)
        return fact_id_of(self.video_id, self.cache_keys[kind], kind, int(number))


@dataclass
class Projection:
    """The rows of one document, filled by ``project``."""

    ids: FactIds
    source: Source
    image_uris: Mapping[str, str]
    rows: Rows = field(default_factory=dict)
    cited: set[str] = field(default_factory=set)
    """Kinds of fact that were cited: this document's rows depend on the stages behind them."""
    members: dict[str, str] = field(default_factory=dict)
    """Videos whose events were cited, with the cache key of those events."""

    def refer(self, ref: FactRef | None) -> UUID | None:
        """As ``FactIds.resolve``, remembering which kind was cited; None stays None."""
        if ref is None:
            return None
        self.cited.add(ref.partition(":")[0])
        return self.ids.resolve(ref)

    def refer_all(self, refs: Sequence[FactRef]) -> list[UUID]:
        """As ``refer`` for many, each once, in order."""
        return [id_ for ref in dict.fromkeys(refs) if (id_ := self.refer(ref)) is not None]

    def identity(self, kind: str, ordinal: int) -> Row:
        """The columns that every row has."""
        return {
            "fact_id": fact_id_of(self.ids.video_id, self.source.cache_key, kind, ordinal),
            "video_id": self.ids.video_id,
            "stage_run_id": self.source.stage_run_id,
            "cache_key": self.source.cache_key,
            "ordinal": ordinal,
        }

    def add(self, table: Table, fact: Fact, ordinal: int, /, **columns: object) -> None:
        """One fact: its identity, span, flags, the fields that the table shares with it, and more.

        Args:
            table: where it goes.
            fact: fields of the same name as a column are taken over.
            ordinal: index in the document.
            columns: what cannot be taken over.
        """
        shared = {
            name: getattr(fact, name)
            for name in type(fact).model_fields
            if name in table.c and name not in columns
        }
        row = self.identity(fact.kind, ordinal) | span_columns(fact.span)
        row |= shared | columns | {"flags": list(fact.flags)}
        self.rows.setdefault(table, []).append(row)


def project(ids: FactIds, source: Source, image_uris: Mapping[str, str]) -> Projection:
    """All rows of a document, its coverage included.

    Args:
        ids: of the asset that the rows are about.
        source: the document and who made it.
        image_uris: sample name -> where the picture can be fetched.

    Raises:
        EngineError: a cited fact does not exist.
    """
    projection = Projection(ids, source, image_uris)
    document = source.document
    _write(projection, document)
    projection.rows[ft.coverage] = [
        projection.identity(f"coverage/{source.stage}", 0)
        | {
            "stage": source.stage,
            "covered_s": document.coverage.covered_s,
            "skipped_s": document.coverage.skipped_s,
            "trust": document.coverage.trust,
            "reason": document.coverage.reason,
            "degraded": list(document.degraded),
        }
    ]
    return projection


def span_columns(span: TimeSpan) -> Row:
    """The exact span; the database derives the seconds."""
    return span.model_dump()


def _write(out: Projection, document: StageDocument) -> None:
    match document:
        case ShotsDocument():
            _write_shots(out, document)
        case EmbedDocument():
            _write_labels(out, document)
        case ListenDocument():
            _write_speech(out, document)
        case TextDocument():
            _write_texts(out, document)
        case ActionsDocument():
            _write_actions(out, document)
        case EventsDocument():
            _write_events(out, document)
        case CausesDocument():
            _write_edges(out, document)
        case ReasonDocument():
            _write_answers(out, document)


def _write_shots(out: Projection, document: ShotsDocument) -> None:
    for i, shot in enumerate(document.shots):
        out.add(ft.shots, shot, i)
    for i, keyframe in enumerate(document.keyframes):
        out.add(ft.keyframes, keyframe, i, image_uri=out.image_uris.get(keyframe.sample_name))


def _write_labels(out: Projection, document: EmbedDocument) -> None:
    places = {place.label: place for place in document.alignments}
    for i, label in enumerate(document.labels):
        out.add(ft.labels, label, i, **_region(places.get(f"label:{i}")))


def _region(place: Alignment | None) -> Row:
    """Columns that say where a label's name found what it names; null for most models."""
    if place is None:
        return dict.fromkeys((*(f"box_{name}" for name in Box.model_fields), "attention_entropy"))
    return _box(place.box) | {"attention_entropy": place.entropy}


def _box(box: Box) -> Row:
    return {f"box_{name}": value for name, value in box}


def _write_speech(out: Projection, document: ListenDocument) -> None:
    word_ordinal = 0
    for i, utterance in enumerate(document.utterances):
        out.add(ft.utterances, utterance, i)
        for word in utterance.words:
            _write_word(out, word, word_ordinal, utterance, i)
            word_ordinal += 1
    for i, sound in enumerate(document.sounds):
        # A label by its contract, but numbered apart from those of the image model.
        fact_id = out.identity("sound", i)["fact_id"]
        out.add(ft.labels, sound, i, fact_id=fact_id, **_region(None))


def _write_word(
    out: Projection, word: Word, ordinal: int, utterance: Utterance, utterance_ordinal: int
) -> None:
    out.add(
        ft.words,
        word,
        ordinal,
        utterance_id=out.identity(utterance.kind, utterance_ordinal)["fact_id"],
        language=utterance.language,
        speaker=word.speaker or utterance.speaker,
        trust=utterance.trust,
        no_speech_probability=utterance.no_speech_probability,
    )


def _write_texts(out: Projection, document: TextDocument) -> None:
    for i, line in enumerate(document.texts):
        out.add(ft.texts, line, i, **_box(line.box))


def _write_actions(out: Projection, document: ActionsDocument) -> None:
    for i, action in enumerate(document.actions):
        parent = out.refer(action.parent)
        keyframe_pts = list(action.keyframe_pts)
        out.add(ft.actions, action, i, parent_fact_id=parent, keyframe_pts=keyframe_pts)


def _write_events(out: Projection, document: EventsDocument) -> None:
    for i, event in enumerate(document.events):
        out.add(ft.events, event, i, evidence=out.refer_all(event.evidence))


def _write_edges(out: Projection, document: CausesDocument) -> None:
    for i, edge in enumerate(document.edges):
        ends = {
            "cause_event": out.refer(edge.cause_event),
            "effect_event": out.refer(edge.effect_event),
        }
        examples = [_example(out, example) for example in edge.examples]
        out.add(ft.causal_edges, edge, i, **ends, examples=examples)
    said = any(edge.verdict == "insufficient_evidence" for edge in document.edges)
    if document.verdict == "insufficient_evidence" and not said:
        _write_abstention(out, document)


def _example(out: Projection, example: EdgeExample) -> dict[str, object]:
    """Occurrences in one video of the corpus, by the ids that its own facts have."""
    member = out.source.members.get(example.video)
    if member is None:
        msg = f"an edge points into {example.video!r}, which is no video of this corpus"
        raise EngineError(msg)
    out.members[str(member.video_id)] = member.cache_key
    events = {
        name: str(fact_id_of(member.video_id, member.cache_key, kind, int(number)))
        for name in ("cause_event", "effect_event")
        for kind, _, number in [getattr(example, name).partition(":")]
    }
    return {"video_id": str(member.video_id), **events, "lag_s": example.lag_s}


def _write_abstention(out: Projection, document: CausesDocument) -> None:
    """No pair could even be tested: that is an answer too, and has its number."""
    row = out.identity("abstention", 0) | span_columns(TimeSpan.from_seconds(0.0, 0.0))
    row |= {
        "scope": document.scope,
        "cause_type": ABSTENTION,
        "effect_type": ABSTENTION,
        "cause_event": None,
        "effect_event": None,
        "lag_s": None,
        "cooccurrences": 0,
        "strength": None,
        "p_value": None,
        "q_value": None,
        "test": "none",
        "effective_n": document.effective_n,
        "counterfactual_delta": None,
        "delta_low": None,
        "delta_high": None,
        "confidence": None,
        "placebo_rate": document.placebo_rate,
        "verdict": document.verdict,
        "reason": document.reason,
        "num_videos": document.num_videos if document.scope == "corpus" else None,
        "heterogeneity": None,
        "examples": [],
        "flags": [],
    }
    out.rows.setdefault(ft.causal_edges, []).append(row)


def _write_answers(out: Projection, document: ReasonDocument) -> None:
    for i, answer in enumerate(document.answers):
        out.add(ft.answers, answer, i, kind=answer.answer_kind, cites=out.refer_all(answer.cites))
    for i, found in enumerate(document.contradictions):
        out.add(
            ft.contradictions,
            found,
            i,
            kind=found.contradiction_kind,
            fact_a=out.refer(found.fact_a),
            fact_b=out.refer(found.fact_b),
        )
