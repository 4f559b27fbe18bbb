"""The causal graph drawn: as SVG with pictures, and as lines of text.

Layers go from roots to effects (longest path), and within a layer nodes stand where their
neighbours are (the barycentre rule of Sugiyama, Tagawa and Toda 1981).
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from flows.clock import clock
from flows.svg import Svg
from tasks.store.graphs import CausalGraph, GraphEdge, GraphNode

NODE_WIDTH, NODE_HEIGHT, THUMB_HEIGHT = 168, 122, 84
COLUMN, ROW, MARGIN = 356, 150, 24
SWEEPS = 4
MAX_LABEL = 26
MAX_REASON = 150
LINE = 18
LABEL_RISE = 0.3
"""How far up the way back to the cause a label stands, so that those of one effect differ."""
PER_CONFIDENCE_WIDTH = 2.5
"""Width of the line of an edge that is certain."""

Places = dict[str, tuple[float, float]]
Way = tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """Where everything stands: columns from left to right, rows from top to bottom.

    Attributes:
        layers: names by layer; an effect stands in a later layer than all its causes.
        ways: for each edge the names that it goes through. Where it skips a layer a bend of its
            own stands there, so that no line runs behind a node.
    """

    layers: tuple[tuple[str, ...], ...]
    ways: tuple[Way, ...]


def lay_out(graph: CausalGraph) -> Layout:
    """Layers and ways of a graph.

    An edge that would close a cycle (the miner makes none) is left out of the layering.
    """
    depth = {node.type: 0 for node in graph.nodes}
    for _ in graph.nodes:
        for edge in graph.edges:
            least = depth[edge.cause] + 1
            if depth[edge.effect] < least < len(depth):
                depth[edge.effect] = least
    rows: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in sorted(depth):
        rows[depth[name]].append(name)
    ways: list[Way] = []
    for number, edge in enumerate(graph.edges):
        between = range(depth[edge.cause] + 1, depth[edge.effect])
        # No type has such a name: labels hold printable text.
        bends = [f"\0{number}:{layer}" for layer in between]
        for layer, bend in zip(between, bends, strict=True):
            rows[layer].append(bend)
        ways.append((edge.cause, *bends, edge.effect))
    _settle(rows, [pair for way in ways for pair in pairwise(way)])
    return Layout(tuple(tuple(row) for row in rows if row), tuple(ways))


def _settle(rows: list[list[str]], links: list[tuple[str, str]]) -> None:
    """Order every layer by where its neighbours stand, back and forth."""
    near: dict[str, list[str]] = {}
    for a, b in links:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    for sweep in range(SWEEPS):
        ordered = rows if sweep % 2 == 0 else rows[::-1]
        for before, row in pairwise(ordered):
            at = {name: i / max(1, len(before) - 1) for i, name in enumerate(before)}
            centre = {}
            for name in row:
                seen = [at[other] for other in near.get(name, []) if other in at]
                centre[name] = sum(seen) / len(seen) if seen else 0.5
            row.sort(key=lambda name, centre=centre: (centre[name], name))  # type: ignore[misc]


def draw(graph: CausalGraph, pictures: Mapping[str, str]) -> str:
    """The graph as one SVG document that needs nothing else.

    Args:
        graph: what to draw.
        pictures: address of a keyframe -> small picture of it as a data URI.
    """
    svg = Svg()
    layout = lay_out(graph)
    tallest = max((len(row) for row in layout.layers), default=0)
    places: Places = {}
    for column, row in enumerate(layout.layers):
        shift = (tallest - len(row)) * ROW / 2
        for i, name in enumerate(row):
            places[name] = (MARGIN + column * COLUMN, MARGIN + shift + i * ROW)
    for edge, way in zip(graph.edges, layout.ways, strict=True):
        _draw_edge(svg, edge, [places[name] for name in way])
    for node in graph.nodes:
        _draw_node(svg, node, places[node.type], pictures.get(node.image_uri or ""))
    for edge, way in zip(graph.edges, layout.ways, strict=True):
        _label_edge(svg, edge, places[way[-2]], places[way[-1]])
    y = MARGIN + tallest * ROW + (0 if layout.layers else LINE)
    lines = abstention_lines(graph)
    for number, line in enumerate(lines):
        svg.text(MARGIN, y + number * LINE, _cut(line, MAX_REASON), fill="#a40", font_size=13)
    width = max(MARGIN * 2 + (len(layout.layers) - 1) * COLUMN + NODE_WIDTH, 900 if lines else 0)
    return svg.finish(width, y + len(lines) * LINE + MARGIN / 2)


def _draw_edge(svg: Svg, edge: GraphEdge, way: list[tuple[float, float]]) -> None:
    """A line from the cause's right side to the effect's left, level where it passes a layer."""
    half = NODE_HEIGHT / 2
    x, y = way[0][0] + NODE_WIDTH, way[0][1] + half
    path = f"M{x:.1f} {y:.1f}"
    for number, (left, top) in enumerate(way[1:], start=1):
        bend, level = (left - x) / 2, top + half
        path += f"C{x + bend:.1f} {y:.1f} {left - bend:.1f} {level:.1f} {left:.1f} {level:.1f}"
        x, y = left, level
        if number < len(way) - 1:
            x += NODE_WIDTH
            path += f"H{x:.1f}"
    sure = edge.confidence if edge.confidence is not None else 0.5
    svg.shape(
        "path",
        d=path,
        fill="none",
        stroke="#456",
        stroke_width=1.0 + PER_CONFIDENCE_WIDTH * sure,
        stroke_opacity=0.35 + 0.65 * sure,
        marker_end="url(#arrow)",
    )


def _label_edge(
    svg: Svg, edge: GraphEdge, before: tuple[float, float], effect: tuple[float, float]
) -> None:
    """In the gap before the effect, where no node stands."""
    x = effect[0] - (COLUMN - NODE_WIDTH) / 2
    y = effect[1] + NODE_HEIGHT / 2 + (before[1] - effect[1]) * LABEL_RISE
    for number, line in enumerate(edge_numbers(edge)):
        svg.text(
            x, y - 8 + number * 26, line, text_anchor="middle", font_size=11,
            paint_order="stroke", stroke="#fff", stroke_width=3,
        )  # fmt: skip


def edge_numbers(edge: GraphEdge) -> tuple[str, str]:
    """Lag and confidence; how often, and in how many videos."""
    lag = "lag unknown" if edge.lag_s is None else f"{edge.lag_s:.2f} s later"
    sure = "" if edge.confidence is None else f", confidence {edge.confidence:.2f}"
    seen = f"{edge.cooccurrences} times"
    if edge.num_videos is not None:
        seen += f" in {edge.num_videos} videos"
        if edge.heterogeneity is not None:
            seen += f", I2 {edge.heterogeneity:.2f}"
    return lag + sure, seen


def _draw_node(svg: Svg, node: GraphNode, place: tuple[float, float], picture: str | None) -> None:
    x, y = place
    svg.shape(
        "rect", x=x, y=y, width=NODE_WIDTH, height=NODE_HEIGHT, rx=8, fill="#f4f7fa", stroke="#89a"
    )
    if picture is not None:
        svg.image(x + 8, y + 6, NODE_WIDTH - 16, THUMB_HEIGHT - 6, picture)
    else:
        svg.text(
            x + NODE_WIDTH / 2, y + THUMB_HEIGHT / 2 + 4, "no picture", fill="#99a",
            text_anchor="middle",
        )  # fmt: skip
    svg.text(
        x + NODE_WIDTH / 2, y + THUMB_HEIGHT + 16, _cut(node.type, MAX_LABEL),
        text_anchor="middle", font_weight=600,
    )  # fmt: skip
    at = "" if node.at_s is None else f", e.g. at {clock(node.at_s)}"
    svg.text(
        x + NODE_WIDTH / 2, y + THUMB_HEIGHT + 31, f"{node.events} events{at}",
        text_anchor="middle", font_size=10, fill="#667",
    )  # fmt: skip


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "\N{HORIZONTAL ELLIPSIS}"


def abstention_lines(graph: CausalGraph) -> list[str]:
    """What could not be decided, and for want of what."""
    lines = [f"not enough evidence: {a.cause} -> {a.effect}: {a.reason}" for a in graph.abstentions]
    more = graph.num_abstentions - len(lines)
    if more > 0:
        lines.append(f"and {more} more pairs without enough evidence")
    if not graph.edges:
        lines.insert(0, "No edge was found causal.")
    return lines


def tree_lines(graph: CausalGraph) -> list[str]:
    """The graph as text: from each root its effects, indented; a type is unfolded once."""
    effects = {edge.effect for edge in graph.edges}
    roots = [node.type for node in graph.nodes if node.type not in effects]
    lines: list[str] = []
    unfolded: set[str] = set()
    for name in [*roots, *(node.type for node in graph.nodes)]:
        if name not in unfolded:
            lines.append(name)
            _unfold(name, "", graph, unfolded, lines)
    return lines + abstention_lines(graph)


def _unfold(
    name: str, indent: str, graph: CausalGraph, unfolded: set[str], lines: list[str]
) -> None:
    unfolded.add(name)
    below = [edge for edge in graph.edges if edge.cause == name]
    for number, edge in enumerate(below):
        last = number == len(below) - 1
        how, seen = edge_numbers(edge)
        known = edge.effect in unfolded
        lines.append(
            f"{indent}{'└' if last else '├'}─ {edge.effect}  [{how}, {seen}]"
            + (" (see above)" if known else "")
        )
        if not known:
            _unfold(edge.effect, indent + ("   " if last else "│  "), graph, unfolded, lines)


def data_uri(svg: str) -> str:
    """A drawing as an address that needs no server."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
