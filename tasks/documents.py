"""Which contract each stage's output document has."""

from engines.contracts.actions import ActionsDocument, PoseDocument
from engines.contracts.base import StageDocument
from engines.contracts.causal import CausesDocument, EventsDocument
from engines.contracts.media import MediaProbe, SampleDocument, ShotsDocument
from engines.contracts.reasoning import ReasonDocument
from engines.contracts.speech import ListenDocument
from engines.contracts.vision import EmbedDocument, TextDocument

DOCUMENTS: dict[str, type[StageDocument]] = {
    "probe": MediaProbe,
    "sample": SampleDocument,
    "shots": ShotsDocument,
    "embed": EmbedDocument,
    "listen": ListenDocument,
    "read_text": TextDocument,
    "pose": PoseDocument,
    "actions": ActionsDocument,
    "events": EventsDocument,
    "causes": CausesDocument,
    "reason": ReasonDocument,
}
"""In the order of the pipeline."""
