"""Letters that come up are noticed while the camera moves, and movement alone is not."""

import cv2
import numpy as np

from engines.vision.label_engine import Picture
from engines.vision.picture_change import StrokeWatch


def moving(index: int) -> Picture:
    """A camera that pans by twelve pixels a sample over soft scenery with thin poles."""
    rng = np.random.default_rng(3)
    coarse = rng.integers(40, 160, (12, 60, 3), dtype=np.uint8)
    scenery = cv2.resize(coarse, (1280, 240), interpolation=cv2.INTER_CUBIC)
    for x in range(0, 1280, 40):
        cv2.line(scenery, (x, 0), (x, 240), (230, 230, 230), 3)
    return np.ascontiguousarray(scenery[:, 12 * index : 12 * index + 426])


def test_letters_are_noticed_when_they_come_up_and_not_while_they_stand() -> None:
    watch = StrokeWatch()
    noticed = []
    for i in range(30):
        picture = moving(i)
        if 12 <= i < 20:
            cv2.putText(picture, "mind the gap", (60, 90), 0, 0.8, (255, 255, 255), 2)
        noticed += [i] if watch.appear(picture) else []
    assert noticed == [12]


def test_another_size_is_no_appearance() -> None:
    watch = StrokeWatch()
    assert not watch.appear(moving(0))
    assert not watch.appear(moving(0)[::2, ::2])
