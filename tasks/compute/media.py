"""probe, sample, shots: run in the decoding child."""

import shutil
import zipfile

from engines.contracts.media import (
    MediaProbe,
    SampleDocument,
    SampleParams,
    ShotParams,
    ShotsDocument,
)
from engines.media import MediaLimits
from engines.media.probe import probe as probe_file
from engines.media.sample import decode
from engines.media.shots import detect
from tasks.compute.call import StageCall


def probe(call: StageCall[MediaLimits]) -> MediaProbe:
    """Open the file and read its headers and first packets."""
    return probe_file(call.inputs["content"], call.params)


def sample(call: StageCall[SampleParams]) -> SampleDocument:
    """The one decode pass: samples, signals and sound into the work directory."""
    return decode(
        call.inputs["content"], call.document("probe", MediaProbe), call.params, call.work_dir
    )


def shots(call: StageCall[ShotParams]) -> ShotsDocument:
    """Shots and keyframes from the signals; each keyframe's picture as a file of its own."""
    blobs = call.work_dir / "inputs"
    blobs.mkdir(exist_ok=True)
    for name, path in call.inputs.items():
        if name != "sample":
            link = blobs / name
            link.unlink(missing_ok=True)
            link.symlink_to(path)
    document = detect(call.document("sample", SampleDocument), blobs, call.params)
    with zipfile.ZipFile(call.inputs["samples.zip"]) as archive:
        for keyframe in document.keyframes:
            target = call.work_dir / f"keyframe-{keyframe.sample_name}"
            with archive.open(keyframe.sample_name) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out)
    return document
