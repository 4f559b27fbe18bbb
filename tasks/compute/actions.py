"""actions: runs in the model child."""

import numpy as np

from engines.actions.recognise import recognise
from engines.contracts.actions import ActionsDocument, ActionsParams, PoseDocument
from tasks.compute.call import StageCall
from tasks.compute.pose import JOINTS, PTS, WORLD


def actions(call: StageCall[ActionsParams]) -> ActionsDocument:
    """What the followed people do, in nested segments."""
    return recognise(
        call.document("pose", PoseDocument),
        np.load(call.inputs[JOINTS]),
        np.load(call.inputs[WORLD]),
        np.load(call.inputs[PTS]),
        call.params.model_copy(update={"threads": call.threads}),
    )
