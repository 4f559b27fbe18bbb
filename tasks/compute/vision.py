"""embed, read_text: run in the model child."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from engines.contracts.media import Sample, SampleDocument, ShotsDocument
from engines.contracts.vision import EmbedDocument, EmbedParams, ReadTextParams, TextDocument
from engines.media.samples import SampleArchive
from engines.vision.embed import embed as embed_pictures
from engines.vision.read_text import read_text as read_pictures
from tasks.compute.call import P, StageCall

EMBEDDINGS = "embeddings.npy"


def embed(call: StageCall[EmbedParams]) -> EmbedDocument:
    """Labels with spans, and vectors of sampled pictures as a blob."""
    sampled = call.document("sample", SampleDocument)
    shots = call.optional("shots", ShotsDocument)
    params = call.params.model_copy(update={"threads": call.threads})
    with SampleArchive(call.inputs["samples.zip"]) as archive:
        document, vectors = embed_pictures(
            _pictures(sampled, archive),
            sampled.time_base_num,
            sampled.time_base_den,
            params,
            call.cache_dir,
            end_pts=_end_pts(call),
            keyframes=None if shots is None else {k.sample_name for k in shots.keyframes},
        )
    np.save(call.work_dir / EMBEDDINGS, vectors)
    return document


def read_text(call: StageCall[ReadTextParams]) -> TextDocument:
    """Lines of on-screen text with their spans."""
    sampled = call.document("sample", SampleDocument)
    with SampleArchive(call.inputs["samples.zip"]) as archive:
        return read_pictures(
            _Source(sampled.samples, archive),
            sampled.time_base_num,
            sampled.time_base_den,
            call.params.model_copy(update={"threads": call.threads}),
            end_pts=_end_pts(call),
        )


class _Source:
    """The samples as the text engine reads them: by name, only those that it asks for."""

    def __init__(self, samples: tuple[Sample, ...], archive: SampleArchive) -> None:
        self.samples = samples
        self._archive = archive

    def read(self, name: str) -> npt.NDArray[np.uint8]:
        return self._archive.read(name)


def _end_pts(call: StageCall[P]) -> int:
    """Where the picture ends, in the time base of the samples."""
    return int(np.load(call.inputs["pts.npy"], mmap_mode="r")[-1])


def _pictures(
    sampled: SampleDocument, archive: SampleArchive
) -> Iterator[tuple[Sample, npt.NDArray[np.uint8]]]:
    for sample in sampled.samples:
        yield sample, archive.read(sample.name)
