"""Pictures for whoever follows people: many a second, small, and where something moves.

Samples are a few a second at most; a gesture needs ten or more. All of a long file at such a rate
is too much to keep, so pictures are counted in blocks of some seconds, and when the budget is full
the block with the least motion goes, whole: what stays has its full rate.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from av.video.frame import VideoFrame

from engines.media.pictures import PictureMaker, encode_jpeg
from engines.media.signals import FloatArray, UInt8Array, luma_of
from engines.media.workspace import Workspace

FILE: Final = "people"
_BLOCK_S = 4.0
_QUALITY = 85


@dataclass
class Block:
    """A few seconds of pictures."""

    start_s: float
    end_s: float
    """Where the next one began; not yet known of the last."""
    change: float = 0.0
    """Sum over its pictures of the mean luma change against the picture before, 0-1 each."""
    pictures: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Frame, pts, and where its JPEG lies in the workspace's file: offset and size."""

    @property
    def motion(self) -> float:
        """Mean change of a picture."""
        return self.change / len(self.pictures)


class PeoplePass:
    """Takes a picture every ``step_s`` and lets dull blocks go."""

    def __init__(
        self, workspace: Workspace, maker: PictureMaker, *, step_s: float, budget: int
    ) -> None:
        """Write to ``workspace``; ``maker`` bounds the size of a picture."""
        self._workspace = workspace
        self._maker = maker
        self.step_s = step_s
        self._budget = budget
        self._blocks: list[Block] = []
        self._next_slot: int | None = None
        self._last_luma: FloatArray | None = None
        self.last_taken: int | None = None
        """Frame of the latest picture, also where it was let go since."""
        self.skipped_s = 0.0
        """Seconds whose pictures were let go."""
        self.height = 0
        self.width = 0

    @property
    def num_pictures(self) -> int:
        """Pictures kept."""
        return sum(len(block.pictures) for block in self._blocks)

    def pictures(self) -> Iterator[tuple[int, int, int, int]]:
        """Frame, pts, offset and size of the kept pictures, by time."""
        for block in self._blocks:
            yield from block.pictures

    def take(
        self, frame: VideoFrame, number: int, pts: int, time_s: float, thumb: UInt8Array
    ) -> None:
        """Keep the first frame of each step.

        Args:
            frame: decoded.
            number: its index in display order.
            pts: its place on the asset clock.
            time_s: the same in seconds.
            thumb: uint8 [27, 48, 4] RGBA of it.
        """
        slot = math.floor(time_s / self.step_s + 1e-9)
        if self._next_slot is not None and slot < self._next_slot:
            return
        self._next_slot = slot + 1
        luma = luma_of(thumb)
        change = 0.0 if self._last_luma is None else float(np.abs(luma - self._last_luma).mean())
        self._last_luma = luma
        self.last_taken = number
        picture = self._maker.picture(frame)
        self.height, self.width = picture.shape[:2]
        encoded = encode_jpeg(picture, _QUALITY)
        file = self._workspace.file(FILE)
        block = self._block(time_s)
        block.change += change
        block.pictures.append((number, pts, file.tell(), len(encoded)))
        file.write(encoded)
        while self.num_pictures > self._budget and len(self._blocks) > 1:
            self._let_go()

    def _block(self, time_s: float) -> Block:
        if not self._blocks or time_s >= self._blocks[-1].start_s + _BLOCK_S:
            if self._blocks:
                self._blocks[-1].end_s = time_s
            self._blocks.append(Block(time_s, time_s))
        return self._blocks[-1]

    def _let_go(self) -> None:
        dullest = min(self._blocks[:-1], key=lambda block: (block.motion, block.start_s))
        self._blocks.remove(dullest)
        self.skipped_s += dullest.end_s - dullest.start_s
        live = sum(size for *_, size in self.pictures())
        # Half of the file may be dead, so that each byte is copied once or twice at most.
        if self._workspace.file(FILE).tell() > 2 * live:
            self._compact()

    def _compact(self) -> None:
        pieces = [(offset, size) for *_, offset, size in self.pictures()]
        offsets = iter(self._workspace.rewrite(FILE, pieces))
        for block in self._blocks:
            block.pictures = [(n, pts, next(offsets), size) for n, pts, _, size in block.pictures]

    def state(self) -> dict[str, Any]:
        """JSON values to go on from."""
        return {
            "blocks": [vars(block) for block in self._blocks],
            "next_slot": self._next_slot,
            "last_taken": self.last_taken,
            "skipped_s": self.skipped_s,
            "size": [self.height, self.width],
        }

    def restore(self, state: dict[str, Any], last_thumb: UInt8Array | None) -> None:
        """Go on from a state.

        Args:
            state: as given by ``state``.
            last_thumb: uint8 [27, 48, 3] RGB of frame ``last_taken``.
        """
        self._blocks = [
            Block(b["start_s"], b["end_s"], b["change"], [tuple(p) for p in b["pictures"]])
            for b in state["blocks"]
        ]
        self._next_slot = state["next_slot"]
        self.last_taken = state["last_taken"]
        self._last_luma = None if last_thumb is None else luma_of(last_thumb)
        self.skipped_s = state["skipped_s"]
        self.height, self.width = state["size"]
