"""The drawn graph: layers, escaping, abstention, and nothing that is loaded from elsewhere."""

import base64
import re
import xml.etree.ElementTree as ET
from io import BytesIO

from PIL import Image

from flows.bench.causal_speed_plot import Curve, growth_plot
from flows.chain_graph import data_uri, draw, lay_out, tree_lines
from flows.render import graph_markdown
from tasks.store.graphs import Abstention, CausalGraph, GraphEdge, GraphNode
from tasks.thumbnails import HEIGHT, WIDTH, thumbnail

NAMESPACE = {"s": "http://www.w3.org/2000/svg"}
HOSTILE = "label:</text><script>alert(1)</script>&\"'\x1b[2J\x00"


def node(name: str, image_uri: str | None = None) -> GraphNode:
    return GraphNode(type=name, events=12, at_s=61.5, image_uri=image_uri)


def edge(cause: str, effect: str, **more) -> GraphEdge:
    values = {
        "lag_s": 0.5, "confidence": 0.95, "cooccurrences": 11, "q_value": 1e-6,
        "num_videos": None, "heterogeneity": None,
    }  # fmt: skip
    return GraphEdge(cause=cause, effect=effect, **(values | more))


def graph(*edges: GraphEdge, abstentions: int = 0) -> CausalGraph:
    names = sorted({n for e in edges for n in (e.cause, e.effect)})
    few = [Abstention(cause=f"a{i}", effect="b", reason="3 of 5 needed") for i in range(2)]
    return CausalGraph(
        nodes=tuple(node(n, f"s3://a/{n}.jpg") for n in names),
        edges=edges,
        abstentions=tuple(few[:abstentions]),
        num_abstentions=abstentions,
    )


def picture() -> bytes:
    out = BytesIO()
    Image.new("RGB", (640, 360), (200, 40, 40)).save(out, "JPEG")
    return out.getvalue()


def test_an_effect_stands_after_all_its_causes():
    found = lay_out(graph(edge("a", "b"), edge("b", "c"), edge("a", "c"), edge("d", "c")))
    place = {name: depth for depth, row in enumerate(found.layers) for name in row}
    assert (place["a"], place["b"], place["c"]) == (0, 1, 2)
    assert place["d"] < place["c"]
    # What skips a layer has a place of its own in it.
    assert [len(way) for way in found.ways] == [2, 2, 3, 3]
    assert len(found.layers[1]) == 3


def test_lines_that_would_cross_are_put_beside_each_other():
    found = lay_out(graph(edge("a", "z"), edge("b", "y"), edge("c", "x"))).layers
    assert [found[1].index(n) for n in ("z", "y", "x")] == [
        found[0].index(n) for n in ("a", "b", "c")
    ]


def test_a_ring_is_still_drawn():
    draw(graph(edge("a", "b"), edge("b", "a")), {})
    assert tree_lines(graph(edge("a", "b"), edge("b", "a")))


def test_the_drawing_has_nodes_edges_numbers_and_pictures():
    small = thumbnail(picture())
    svg = draw(
        graph(edge("light:on", "sound:bell", num_videos=6, heterogeneity=0.4)),
        {"s3://a/light:on.jpg": small},
    )
    root = ET.fromstring(svg)
    text = [t.text for t in root.iterfind(".//s:text", NAMESPACE)]
    assert {"light:on", "sound:bell", "0.50 s later, confidence 0.95", "no picture"} <= set(text)
    assert "11 times in 6 videos, I2 0.40" in text
    assert len(root.findall("s:path", NAMESPACE)) == 1
    [image] = root.findall("s:image", NAMESPACE)
    assert image.attrib["href"] == small


def test_what_a_video_says_stays_text():
    svg = draw(graph(edge(HOSTILE, "b"), abstentions=1), {})
    root = ET.fromstring(svg)
    assert {e.tag.split("}")[1] for e in root.iter()} <= {
        "svg", "defs", "marker", "path", "rect", "text", "image",
    }  # fmt: skip
    assert "<script" not in svg
    assert "\x1b" not in svg
    assert not re.search(r'(href|src)="(?!data:image/|#)', svg)


def test_an_abstention_is_shown_as_such():
    empty = graph(abstentions=2)
    svg, lines = draw(empty, {}), tree_lines(empty)
    assert "No edge was found causal." in svg
    assert lines[1] == "not enough evidence: a0 -> b: 3 of 5 needed"
    assert "not enough evidence: a1 -&gt; b" in svg
    more = empty.model_copy(update={"num_abstentions": 9})
    assert tree_lines(more)[-1] == "and 7 more pairs without enough evidence"


def test_the_tree_unfolds_each_type_once():
    lines = tree_lines(graph(edge("a", "b"), edge("a", "c"), edge("b", "d"), edge("c", "d")))
    assert lines[0] == "a"
    assert sum(line.endswith("(see above)") for line in lines) == 1
    assert lines[1].startswith("├─ b  [0.50 s later, confidence 0.95, 11 times]")
    assert lines[2].startswith("│  └─ d")


def test_the_artifact_holds_the_image_where_prefect_shows_it():
    drawn = graph(edge("a", "b"))
    svg = draw(drawn, {})
    text = graph_markdown(drawn, svg, "Causal graph of [x](y) `z`")
    [address] = re.findall(r"^!\[.*\]\((\S+)\)$", text, re.MULTILINE)
    assert address == data_uri(svg)
    head, _, body = address.partition(",")
    assert head == "data:image/svg+xml;base64"
    assert base64.b64decode(body).decode() == svg
    assert "\\[x\\]\\(y\\)" in text
    assert text.count("```") == 2


def test_a_thumbnail_is_a_small_jpeg():
    head, _, body = thumbnail(picture()).partition(",")
    assert head == "data:image/jpeg;base64"
    with Image.open(BytesIO(base64.b64decode(body))) as small:
        assert small.format == "JPEG"
        assert small.width <= WIDTH
        assert small.height <= HEIGHT


def test_the_growth_plot_shows_every_point():
    curves = [Curve("videos", (60, 120), (1.0, 2.5), 1.3), Curve("types", (10, 20), (0.5, 1.0), 1)]
    root = ET.fromstring(growth_plot(curves))
    assert len(root.findall("s:circle", NAMESPACE)) == 4
    assert len(root.findall("s:polyline", NAMESPACE)) == 2
