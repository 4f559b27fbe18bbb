"""A few shapes as SVG. Every text and attribute is escaped: labels come from videos."""

from xml.sax.saxutils import escape, quoteattr

FONT = "system-ui, sans-serif"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Svg:
    """A picture that grows shape by shape; y points down, units are pixels."""

    def __init__(self) -> None:
        """Nothing drawn yet."""
        self._parts: list[str] = []

    def shape(self, name: str, content: str = "", **attributes: object) -> None:
        """An element; an underscore in an attribute's name stands for a hyphen."""
        listed = "".join(
            f" {key.rstrip('_').replace('_', '-')}={quoteattr(_legal(_number(value)))}"
            for key, value in attributes.items()
        )
        self._parts.append(f"<{name}{listed}>{escape(_legal(content))}</{name}>")

    def text(self, x: float, y: float, content: str, **attributes: object) -> None:
        """A line of text that begins at (x, y) unless ``text_anchor`` says otherwise."""
        merged = {"font_size": 12, "fill": "#222", "font_family": FONT} | attributes
        self.shape("text", content, x=x, y=y, **merged)

    def image(self, x: float, y: float, width: float, height: float, uri: str) -> None:
        """A picture given as a data URI; nothing is ever loaded from elsewhere."""
        assert uri.startswith("data:image/"), "a drawing holds all its pictures"
        self.shape("image", x=x, y=y, width=width, height=height, href=uri)

    def finish(self, width: float, height: float) -> str:
        """The document."""
        size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
        arrow = (
            '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="#456"/></marker></defs>'
        )
        ground = '<rect width="100%" height="100%" fill="#fff"/>'
        body = "".join(self._parts)
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{arrow}{ground}{body}</svg>'


def _number(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _legal(text: str) -> str:
    """Without the characters that XML cannot hold at all."""
    return "".join(
        c if c.isprintable() or c == " " else REPLACEMENT for c in text.replace("\n", " ")
    )
