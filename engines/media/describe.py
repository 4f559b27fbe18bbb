"""What would decode, told without loading it: the decoder's build decides what comes out."""

from importlib.metadata import version

from engines.media.transnet import MODEL
from engines.runtime.manifest import EngineDescription, is_available, revision


def describe() -> EngineDescription:
    """The decoding library and its version; threads do not change a picture."""
    return EngineDescription(
        engine="reelgraph.media",
        model="ffmpeg",
        model_revision=f"av {version('av')}",
        device="cpu",
        threads=1,
    )


def describe_shots() -> EngineDescription:
    """Shot detection: the library's build, the network of the second look and its weights."""
    there = is_available(MODEL)
    return EngineDescription(
        engine="reelgraph.media",
        model=MODEL if there else "signals",
        model_revision=f"av {version('av')}" + (f" {revision(MODEL)}" if there else ""),
        device="cpu",
        threads=1,
        degraded=() if there else (f"{MODEL} is not installed: doubtful spans by signals alone",),
    )
