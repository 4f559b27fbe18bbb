"""listen: runs in the model child."""

import numpy as np

from engines.contracts.media import MediaProbe, SampleDocument
from engines.contracts.speech import ListenDocument, ListenParams
from engines.speech.listen import listen as listen_to
from tasks.compute.call import StageCall


def listen(call: StageCall[ListenParams]) -> ListenDocument:
    """Utterances, words and sounds on the asset's clock."""
    sampled = call.document("sample", SampleDocument)
    return listen_to(
        np.load(call.inputs["audio.npy"], mmap_mode="r"),
        sampled.audio_start_pts,
        sampled.audio_gaps,
        call.params.model_copy(update={"threads": call.threads}),
        subtitles=call.document("probe", MediaProbe).subtitles,
    )
