"""Cost against size as an SVG of log-log panels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flows.svg import Svg

PANEL_WIDTH, PANEL_HEIGHT = 280, 220
LEFT, TOP, GAP = 60, 44, 70


@dataclass(frozen=True)
class Curve:
    """CPU seconds along one axis."""

    axis: str
    values: tuple[int, ...]
    seconds: tuple[float, ...]
    power: float
    """Slope of the line through the logarithms."""


def growth_plot(curves: Sequence[Curve]) -> str:
    """One panel per axis, all with the same scale of seconds."""
    svg = Svg()
    spent = [s for curve in curves for s in curve.seconds]
    low = 10.0 ** np.floor(np.log10(min(spent)))
    high = 10.0 ** np.ceil(np.log10(max(spent)))
    for number, curve in enumerate(curves):
        _panel(svg, curve, LEFT + number * (PANEL_WIDTH + GAP), (float(low), float(high)))
    width = LEFT + len(curves) * (PANEL_WIDTH + GAP)
    return svg.finish(width, TOP + PANEL_HEIGHT + 56)


def _place(value: float, low: float, high: float, length: float) -> float:
    return float(np.log(value / low) / np.log(high / low)) * length


def _panel(svg: Svg, curve: Curve, left: float, seconds: tuple[float, float]) -> None:
    bottom = TOP + PANEL_HEIGHT
    svg.shape(
        "rect", x=left, y=TOP, width=PANEL_WIDTH, height=PANEL_HEIGHT, fill="none", stroke="#999"
    )
    tick = seconds[0]
    while tick <= seconds[1] * 1.001:
        y = bottom - _place(tick, *seconds, PANEL_HEIGHT)
        svg.shape("line", x1=left, x2=left + PANEL_WIDTH, y1=y, y2=y, stroke="#ddd")
        svg.text(left - 6, y + 4, f"{tick:g} s", text_anchor="end")
        tick *= 10.0
    first, last = curve.values[0] / 1.3, curve.values[-1] * 1.3
    points = [
        (
            left + _place(value, first, last, PANEL_WIDTH),
            bottom - _place(spent, *seconds, PANEL_HEIGHT),
        )
        for value, spent in zip(curve.values, curve.seconds, strict=True)
    ]
    svg.shape(
        "polyline",
        points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points),
        fill="none",
        stroke="#258",
        stroke_width=2,
    )
    for (x, y), value, spent in zip(points, curve.values, curve.seconds, strict=True):
        svg.shape("circle", cx=x, cy=y, r=4, fill="#258")
        svg.text(x, y - 9, f"{spent:.2g}", text_anchor="middle", font_size=11)
        svg.text(x, bottom + 17, str(value), text_anchor="middle")
    title = f"CPU seconds against {curve.axis}: power {curve.power:.2f}"
    svg.text(left, TOP - 12, title, font_weight=600)
    svg.text(left + PANEL_WIDTH / 2, bottom + 36, curve.axis, text_anchor="middle")
