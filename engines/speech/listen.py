"""Sound in, words and sound events out: the whole of the stage ``listen``.

The recogniser is only shown what the voice detector takes for voice, in windows of at most 30 s
that stand alone, and what it writes is held against voice, text statistics, language and the
file's own subtitles. Words that no witness but the recogniser supports are marked or left out.
"""

from itertools import combinations

from engines.contracts.base import Coverage
from engines.contracts.media import SubtitleCue
from engines.contracts.speech import ListenDocument, ListenParams, Utterance
from engines.speech.audio import SAMPLE_RATE_HZ, Interval, Pcm, merge, overlap_s
from engines.speech.channels import check_audio, mono_mix, split_tracks
from engines.speech.describe import describe
from engines.speech.registry import (
    load_recogniser,
    load_sound_classifier,
    load_voice_detector,
)
from engines.speech.sound_witness import weigh_sound_classes
from engines.speech.sounds import HeardClasses, HeardSpeech, label_sounds
from engines.speech.subtitles import weigh_subtitles
from engines.speech.text_statistics import equal_runs, similarity
from engines.speech.transcribe import TrackTranscriber, map_voice
from engines.speech.utterances import Draft, to_utterance

_SAME_WORDS = 0.8
_LOOP_TRUST = 0.2


def listen(
    audio: Pcm,
    start_pts: int,
    gaps: tuple[tuple[float, float], ...],
    params: ListenParams,
    subtitles: tuple[SubtitleCue, ...] = (),
) -> ListenDocument:
    """Write down the speech and label the sounds of one recording.

    Args:
        audio: int16 [channels, n], one or two channels at 16 kHz.
        start_pts: of sample 0 on the asset clock, in 1/16000 s; may be negative.
        gaps: [start_s, end_s) on the asset clock where no sound was decoded and zeros stand in.
        params: what changes the result.
        subtitles: cues of text tracks in the file, on the asset clock.

    Raises:
        UsageError: audio of another dtype or shape, or a name in ``params`` that does not exist.
        ModelMissingError, ModelHashError: a model is not there, or is not what it should be.
        NotFiniteError: a model gave NaN or infinity.
    """
    check_audio(audio)
    description = describe(params)
    zero_s = start_pts / SAMPLE_RATE_HZ
    total_s = audio.shape[1] / SAMPLE_RATE_HZ
    holes = _holes(gaps, zero_s, total_s)
    detector = load_voice_detector(params)
    mix = mono_mix(audio) if audio.shape[1] else audio[0]
    mixed = map_voice(mix, holes, detector)

    drafts: list[Draft] = []
    for track in split_tracks(audio, detector):
        voice = mixed if track.speaker is None else map_voice(track.pcm, holes, detector)
        if voice.regions:
            recogniser = load_recogniser(params)
            drafts.extend(TrackTranscriber(track, voice, holes, recogniser, params).run())
    classes = _hear_classes(mix, params)
    if classes is not None:
        drafts = weigh_sound_classes(drafts, classes.probabilities)
    drafts = weigh_subtitles(merge_speakers(drafts), subtitles, zero_s)
    kept = [draft for draft in mark_loops(drafts) if draft.trust >= params.min_trust]
    placed = [to_utterance(draft, start_pts) for draft in kept]
    utterances = tuple(utterance for utterance in placed if utterance is not None)
    speech = HeardSpeech(mixed.regions, mixed.probabilities, detector.name)
    return ListenDocument(
        coverage=_coverage(utterances, len(drafts) - len(kept), total_s, holes),
        degraded=description.degraded,
        utterances=utterances,
        sounds=label_sounds(mix, start_pts, holes, speech, classes),
        model=description.model,
    )


def mark_loops(drafts: list[Draft]) -> list[Draft]:
    """Mark utterances that stand in a row of four or more equal ones, each speaker by itself."""
    marked = list(drafts)
    for speaker in {draft.speaker for draft in drafts}:
        indices = [i for i, draft in enumerate(drafts) if draft.speaker == speaker]
        runs = equal_runs([drafts[i].text for i in indices])
        for index, in_run in zip(indices, runs, strict=True):
            if in_run:
                marked[index] = drafts[index].marked("loop", at_most=_LOOP_TRUST)
    return marked


def merge_speakers(drafts: list[Draft]) -> list[Draft]:
    """Utterances of all tracks by start; one that both channels carry is kept once.

    A speaker of one channel often leaks into the other: of two overlapping utterances with the
    same words the surer stays.
    """
    leaked: set[int] = set()
    for i, j in combinations(range(len(drafts)), 2):
        a, b = drafts[i], drafts[j]
        if a.speaker == b.speaker or overlap_s(a.span, b.span) <= 0:
            continue
        if similarity(a.text, b.text) >= _SAME_WORDS:
            leaked.add(i if a.trust < b.trust else j)
    kept = [draft for i, draft in enumerate(drafts) if i not in leaked]
    return sorted(kept, key=lambda draft: draft.span)


def _holes(gaps: tuple[tuple[float, float], ...], zero_s: float, total_s: float) -> list[Interval]:
    """Gaps in seconds of the track, clipped to it and joined."""
    clipped = [(max(0.0, a - zero_s), min(total_s, b - zero_s)) for a, b in gaps]
    return merge([gap for gap in clipped if gap[1] > gap[0]], 0.0)


def _hear_classes(mix: Pcm, params: ListenParams) -> HeardClasses | None:
    classifier = load_sound_classifier(params)
    if classifier is None:
        return None
    return HeardClasses(classifier.probabilities(mix), classifier.name)


def _coverage(
    utterances: tuple[Utterance, ...], dropped: int, total_s: float, holes: list[Interval]
) -> Coverage:
    """What was heard of the recording, and how far the words are to be trusted."""
    skipped_s = sum(end - start for start, end in holes)
    weights = [max(utterance.span.duration_s, 0.01) for utterance in utterances]
    trust = None
    if utterances:
        total = sum(w * u.trust for w, u in zip(weights, utterances, strict=True))
        trust = round(total / sum(weights), 4)
    reasons = []
    if skipped_s > 0:
        reasons.append(f"{skipped_s:.2f} s without decoded sound")
    if dropped:
        reasons.append(f"{dropped} utterances left out for too little trust")
    return Coverage(
        covered_s=max(0.0, total_s - skipped_s),
        skipped_s=skipped_s,
        trust=trust,
        reason="; ".join(reasons) or None,
    )
