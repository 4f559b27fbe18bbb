"""Small pictures of stored keyframes, as data URIs for pages that load nothing."""

import base64
from collections.abc import Iterable
from io import BytesIO

from PIL import Image

from engines.errors import ObjectMissingError
from tasks.objects.keys import parse_s3_uri
from tasks.resources import Resources

WIDTH, HEIGHT = 152, 78
QUALITY = 60


def thumbnail(data: bytes) -> str:
    """A JPEG of at most 152x78 pixels as a data URI.

    Args:
        data: a picture as the pipeline stores keyframes.
    """
    with Image.open(BytesIO(data)) as picture:
        picture.draft("RGB", (2 * WIDTH, 2 * HEIGHT))
        small = picture.convert("RGB")
    small.thumbnail((WIDTH, HEIGHT))
    out = BytesIO()
    small.save(out, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}"


def thumbnails(world: Resources, uris: Iterable[str | None]) -> dict[str, str]:
    """Small pictures by address; one that is gone from the store is left out."""
    found = {}
    for uri in sorted({uri for uri in uris if uri is not None}):
        try:
            found[uri] = thumbnail(world.objects.read(parse_s3_uri(uri)))
        except ObjectMissingError:
            continue
    return found
