"""The one decode pass: every consumer's input is made while each frame is in hand."""

import logging
from collections import deque
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from av.audio.frame import AudioFrame
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream as AvVideoStream

from engines.contracts.media import MediaProbe, VideoStream
from engines.media.allocator import give_back
from engines.media.clock import Epochs, StreamClock
from engines.media.limits import MediaLimits
from engines.media.orientation import Orientation
from engines.media.packets import Damage, PacketDecoder
from engines.media.people import PeoplePass
from engines.media.pictures import PictureMaker, encode_jpeg, sharpness_of
from engines.media.sampler import Candidate, Sampler
from engines.media.signals import CONTEXT, THUMB_SHAPE, SignalBuffer, UInt8Array, slow_lag
from engines.media.sound import RATE_HZ, SoundWriter, channels_of
from engines.media.streams import (
    audio_stream,
    check_size,
    frame_rate_of,
    sample_aspect,
    time_base_of,
    video_clock,
    video_stream,
)
from engines.media.workspace import Workspace

_log = logging.getLogger(__name__)

_THUMB_BYTES = int(np.prod(THUMB_SHAPE))
_TAIL = 8
_REWIND_S = 12.0
_CHECK_EVERY = 16
_CHECK_SAMPLES = 60 * RATE_HZ


class ResumeFailedError(Exception):
    """The checkpointed frame was not met again: this container cannot be sought exactly."""


@dataclass(frozen=True)
class PassParams:
    """What the pass needs to know of the caller's parameters."""

    step_s: float
    budget: int
    novelty_threshold: float
    fixed: bool
    long_edge: int
    people_step_s: float
    people_budget: int
    people_long_edge: int
    chunk_s: float
    threads: int


class OnePass:
    """State of a decode between its first and its last frame."""

    def __init__(
        self,
        container: InputContainer,
        probe: MediaProbe,
        params: PassParams,
        limits: MediaLimits,
        workspace: Workspace,
    ) -> None:
        """Set up writers and clocks, from the workspace's checkpoint where there is one."""
        self._container = container
        self._params = params
        self._limits = limits
        self._workspace = workspace
        self._video = video_stream(container, probe.video.stream_index) if probe.video else None
        self._audio = audio_stream(container, probe.audio.stream_index) if probe.audio else None
        self.epochs = Epochs()
        self.num_frames = 0
        self.first_pts: int | None = None
        self.damage = Damage()
        self.seen_streams: set[int] = set()
        """Indices of the streams that had any data."""
        self.read_to: int | None = None
        """Where the last packet lies in the file, in bytes; None where that is unknown."""
        self.resumed_at: int | None = None
        """Frames that a checkpoint spared; None for a run from the start."""
        self._next_checkpoint_s: float | None = None
        self._pts: list[int] = []
        self._tail: deque[int | None] = deque(maxlen=_TAIL)
        rate = frame_rate_of(self._video) if self._video is not None else Fraction(25)
        self.slow_lag = slow_lag(float(rate))
        self._signals = SignalBuffer(self.slow_lag)
        self.sampler = Sampler(params.step_s, params.budget, params.novelty_threshold, params.fixed)
        self.video_clock = (
            video_clock(container, self._video, self.epochs)
            if self._video is not None
            else StreamClock(Fraction(1, 1000), 1, self.epochs)
        )
        base = time_base_of(self._audio) if self._audio is not None else Fraction(1, 1000)
        self.audio_clock = StreamClock(base, 1, self.epochs)
        channels = channels_of(self._audio) if self._audio is not None else 1
        self.sound = SoundWriter(workspace.file("sound"), channels)
        self.people: PeoplePass | None = None
        if self._video is not None and probe.video is not None:
            self._pictures = self._maker(probe.video, self._video, params.long_edge)
            if params.people_budget:
                self.people = PeoplePass(
                    workspace,
                    self._maker(probe.video, self._video, params.people_long_edge),
                    step_s=params.people_step_s,
                    budget=params.people_budget,
                )
        declared = self._audio.duration if self._audio is not None else None
        self.sound_declared_s = None if declared is None else float(declared * base)
        """Length of the sound as the header has it."""
        self._size = (0, 0)
        self._check_sound_at = 0
        self._skip_picture_to: int | None = None
        self._skip_sound_to: int | None = None
        if workspace.state is not None:
            self._restore()

    @staticmethod
    def _maker(video: VideoStream, stream: AvVideoStream, long_edge: int) -> PictureMaker:
        return PictureMaker(
            Orientation(video.rotation_deg, video.mirrored),
            sample_aspect(stream),
            hdr=video.hdr,
            long_edge=long_edge,
        )

    def run(self) -> None:
        """Decode to the end of the file, or to a limit.

        Raises:
            NeedsSerialError: damage met with several decoder threads.
            ResumeFailedError: the checkpoint does not fit what decodes.
        """
        decoder = PacketDecoder(
            self._container,
            self._video,
            self._audio,
            self._limits,
            threads=self._params.threads,
            damage=self.damage,
            epochs=self.epochs,
        )
        if self.resumed_at is not None:
            decoder.damage = Damage()
        for frame in decoder:
            if isinstance(frame, VideoFrame):
                if self._skip_picture_to is not None:
                    self._skip_picture(frame)
                    continue
                decoder.damage = self.damage
                self._take_picture(frame)
                check = self.num_frames % _CHECK_EVERY == 0
            else:
                self._take_sound(frame)
                check = True
            if check and self._over_limit():
                break
        if self._skip_picture_to is not None:
            raise ResumeFailedError
        self._over_limit()
        self.damage.stopped = decoder.damage.stopped or self.damage.stopped
        self.seen_streams = decoder.seen
        self.read_to = decoder.read_to
        self.sound.flush()
        self.flush_signals()
        self._close_candidate(self.video_clock.end)

    def _over_limit(self) -> bool:
        if self.num_frames >= self._limits.max_frames:
            self.damage.stopped = f"the limit of {self._limits.max_frames} frames was reached"
        elif self.epochs.reached_s - self.start_s > self._limits.max_duration_s:
            self.damage.stopped = (
                f"the limit of {self._limits.max_duration_s:g} s of material was reached"
            )
        else:
            return False
        return True

    @property
    def start_s(self) -> float:
        """First time of any frame so far."""
        starts = []
        if self.first_pts is not None:
            starts.append(self.video_clock.seconds(self.first_pts))
        if self.sound.start is not None:
            starts.append(self.sound.start / RATE_HZ)
        return min(starts, default=0.0)

    def _take_picture(self, frame: VideoFrame) -> None:
        if (frame.width, frame.height) != self._size:
            # A stream may change its size in the middle.
            check_size(frame.width, frame.height, self._limits)
            self._size = (frame.width, frame.height)
        pts = self.video_clock.place(frame.pts, frame.duration or 0, frame.dts)
        self._tail.append(frame.pts)
        if self.first_pts is None:
            self.first_pts = pts
        self._close_candidate(pts)
        thumb = self._pictures.thumb(frame)
        self._pts.append(pts)
        if self._signals.push(thumb):
            self.flush_signals()
        time_s = self.video_clock.seconds(pts)
        due, novelty, level = self.sampler.wants(time_s, thumb)
        if due:
            self._sample(frame, pts, novelty, level)
        if self.people is not None:
            self.people.take(frame, self.num_frames, pts, time_s, thumb)
        self.num_frames += 1
        self._maybe_checkpoint(time_s)

    def _close_candidate(self, pts: int) -> None:
        """Tell the sample of the frame before where it ends."""
        kept = self.sampler.kept
        if kept and kept[-1].frame == self.num_frames - 1:
            kept[-1].end_pts = pts

    def _sample(self, frame: VideoFrame, pts: int, novelty: float, level: int) -> None:
        picture = self._pictures.picture(frame)
        encoded = encode_jpeg(picture)
        file = self._workspace.file("pictures")
        candidate = Candidate(
            frame=self.num_frames,
            pts=pts,
            offset=file.tell(),
            size=len(encoded),
            sharpness=sharpness_of(picture),
            novelty=novelty,
            level=level,
        )
        file.write(encoded)
        if self.sampler.add(candidate):
            kept = self.sampler.kept
            offsets = self._workspace.rewrite("pictures", [(c.offset, c.size) for c in kept])
            for one, offset in zip(kept, offsets, strict=True):
                one.offset = offset

    def _take_sound(self, frame: AudioFrame) -> None:
        if self._skip_sound_to is not None:
            if frame.pts is None or frame.pts <= self._skip_sound_to:
                return
            self._skip_sound_to = None
        self.sound.push(frame, self.audio_clock)
        if self.sound.written >= self._check_sound_at:
            # Absurd times make hours of zeros out of a few packets.
            self._check_sound_at = self.sound.written + _CHECK_SAMPLES
            self._workspace.check_size()
        if self._video is None and self.audio_clock.last is not None:
            self._maybe_checkpoint(self.audio_clock.seconds(self.audio_clock.last))

    def flush_signals(self) -> None:
        """Compute and write the signals of the frames that wait, with their times."""
        thumbs, signals = self._signals.take()
        if len(thumbs):
            self._workspace.file("pts").write(np.array(self._pts, dtype="<i8").data)
            self._pts = []
            self._workspace.file("thumbs").write(thumbs.data)
            self._workspace.file("signals").write(signals.data)
            self._workspace.check_size()

    def _maybe_checkpoint(self, time_s: float) -> None:
        if self._next_checkpoint_s is None:
            self._next_checkpoint_s = time_s + self._params.chunk_s
        if time_s < self._next_checkpoint_s:
            return
        self._next_checkpoint_s = time_s + self._params.chunk_s
        give_back()
        clocks = (self.video_clock, self.audio_clock)
        if any(c.estimated or c.epoch for c in clocks) or None in self._tail:
            # Without times of its own, or with the same time twice, a frame is not met again.
            return
        self.flush_signals()
        self._workspace.save(
            {
                "num_frames": self.num_frames,
                "first_pts": self.first_pts,
                "next_checkpoint_s": self._next_checkpoint_s,
                "tail": list(self._tail),
                "damage": vars(self.damage),
                "reached_s": self.epochs.reached_s,
                "video_clock": self.video_clock.state(),
                "audio_clock": self.audio_clock.state(),
                "sound": self.sound.state(),
                "sampler": self.sampler.state(),
                "people": self.people.state() if self.people is not None else None,
            }
        )

    def _restore(self) -> None:
        """Take over a checkpoint and seek to some seconds before it."""
        state = self._workspace.state
        assert state is not None
        self.num_frames = state["num_frames"]
        self.first_pts = state["first_pts"]
        self._next_checkpoint_s = state["next_checkpoint_s"]
        self._tail.extend(state["tail"])
        damage = state["damage"]
        self.damage = Damage(damage["packets"], [(a, b) for a, b in damage["spans"]])
        self.epochs.reached_s = state["reached_s"]
        self.video_clock.restore(state["video_clock"])
        self.audio_clock.restore(state["audio_clock"])
        self.sound.restore(state["sound"])
        self.sampler.restore(state["sampler"], self._thumb_of(state["sampler"]["last_taken"]))
        if self.people is not None:
            self.people.restore(state["people"], self._thumb_of(state["people"]["last_taken"]))
        context = min(CONTEXT, self.num_frames)
        self._signals = SignalBuffer(
            self.slow_lag, self._stored_thumbs(self.num_frames - context, context)
        )
        self.resumed_at = self.num_frames
        _log.info("going on from a checkpoint: %d frames are done", self.num_frames)
        self._skip_picture_to = self.video_clock.last_raw if self._video is not None else None
        self._skip_sound_to = self.audio_clock.last_raw
        positions = [
            c.seconds(c.last_raw)
            for c in (self.video_clock, self.audio_clock)
            if c.last_raw is not None
        ]
        target_s = max(min(positions) - _REWIND_S, 0.0)
        stream = self._video if self._video is not None else self._audio
        assert stream is not None
        self._container.seek(int(target_s / time_base_of(stream)), stream=stream)

    def _thumb_of(self, frame: int | None) -> UInt8Array | None:
        return None if frame is None else self._stored_thumbs(frame, 1)[0]

    def _stored_thumbs(self, first: int, count: int) -> UInt8Array:
        with self._workspace.path("thumbs").open("rb") as file:
            file.seek(first * _THUMB_BYTES)
            raw = file.read(count * _THUMB_BYTES)
        return np.frombuffer(raw, dtype=np.uint8).reshape(count, *THUMB_SHAPE)

    def _skip_picture(self, frame: VideoFrame) -> None:
        """Pass over frames that are done; the last of them must be the very same picture."""
        assert self._skip_picture_to is not None
        if frame.pts is None or frame.pts > self._skip_picture_to:
            raise ResumeFailedError
        if frame.pts == self._skip_picture_to:
            stored = self._stored_thumbs(self.num_frames - 1, 1)[0]
            if not np.array_equal(stored, self._pictures.thumb(frame)[..., :3]):
                raise ResumeFailedError
            self._skip_picture_to = None
