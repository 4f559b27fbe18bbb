"""Which part of a picture a text means: attention of its tokens over the picture's regions.

Regions are the cells of the grid in which a vision transformer sees a picture. Each token's
vector is compared with each cell's, scaled as the model was trained, and a softmax over the cells
gives its attention (cross-attention with the model's own projections as query and key; dense use
of CLIP after Zhou et al., "Extract Free Dense Labels from CLIP", 2022). The text's attention is
the mean over its tokens.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engines.contracts.vision import Box

Attention = npt.NDArray[np.float32]
"""float32 [rows, columns] over the cells of a picture, sums to 1."""
_TINY = 1e-12
_NEAR_TOP = 0.5
"""Cells with this share of the strongest one's attention, connected with it, are its region."""


@dataclass(frozen=True)
class Aligned:
    """Where a text's attention lies in one picture."""

    box: Box
    """Around the strongest cell and its like."""
    top: tuple[float, float]
    """Middle of the strongest cell: x, y as fractions."""
    entropy: float
    """Of the attention, in nats: 0 is one cell, ln(cells) is everywhere alike."""


def token_attention(
    tokens: npt.NDArray[np.float32], cells: npt.NDArray[np.float32], scale: float
) -> Attention:
    """Attention of a text over a picture.

    Args:
        tokens: float32 [t, d], t >= 1, the text's tokens in the space shared with pictures.
        cells: float32 [rows, columns, d] in the same space.
        scale: what cosines are multiplied by.
    """
    rows, columns, width = cells.shape
    keys = _unit(cells.reshape(-1, width))
    logits = scale * _unit(tokens) @ keys.T
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    mean: Attention = weights.mean(axis=0).reshape(rows, columns).astype(np.float32)
    return mean


def locate(attention: Attention) -> Aligned:
    """The region that attention points at, and how sharply."""
    rows, columns = attention.shape
    top_row, top_column = np.unravel_index(int(attention.argmax()), attention.shape)
    strong = attention >= _NEAR_TOP * attention.max()
    region = _connected(strong, (int(top_row), int(top_column)))
    ys, xs = np.nonzero(region)
    return Aligned(
        box=Box(
            x=float(xs.min() / columns),
            y=float(ys.min() / rows),
            w=float((xs.max() + 1 - xs.min()) / columns),
            h=float((ys.max() + 1 - ys.min()) / rows),
        ),
        top=((float(top_column) + 0.5) / columns, (float(top_row) + 0.5) / rows),
        entropy=entropy(attention),
    )


def entropy(attention: Attention) -> float:
    """In nats."""
    flat = attention.reshape(-1).astype(np.float64)
    return float(-(flat * np.log(np.maximum(flat, _TINY))).sum())


def inside(point: tuple[float, float], box: Box) -> bool:
    """Whether a point lies in a box, edges included: what Top-1 region recall counts."""
    x, y = point
    return box.x <= x <= box.x + box.w and box.y <= y <= box.y + box.h


def _connected(strong: npt.NDArray[np.bool_], start: tuple[int, int]) -> npt.NDArray[np.bool_]:
    found = np.zeros_like(strong)
    waiting = [start]
    while waiting:
        row, column = waiting.pop()
        within = 0 <= row < strong.shape[0] and 0 <= column < strong.shape[1]
        if not within or found[row, column] or not strong[row, column]:
            continue
        found[row, column] = True
        waiting += [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return found


def _unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units: npt.NDArray[np.float32] = vectors / np.maximum(lengths, _TINY)
    return units
