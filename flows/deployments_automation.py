"""The two automations: an uploaded object starts a run, a silent run is marked as crashed.

Both are found by name and brought up to date, so registering twice changes nothing.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState, RunDeployment
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture

UPLOAD_AUTOMATION = "reelgraph: an uploaded video starts its run"
CRASH_AUTOMATION = "reelgraph: a flow run without heartbeat has crashed"

EVENT_CREATED = "s3.object.created"
RESOURCE_PREFIX = "s3.bucket."
SILENCE_LIMIT = timedelta(seconds=100)
"""A little over three heartbeats of 30 s: one late heartbeat is no crash."""


async def ensure_upload_automation(client: PrefectClient, deployment_id: UUID) -> UUID:
    """Run a deployment for each object that the receiver announces.

    Args:
        client: of the Prefect API.
        deployment_id: of a flow with the parameters bucket, key, etag, version_id, inbox_id.

    Returns:
        Id of the automation.
    """
    names = ("bucket", "key", "etag", "version_id", "inbox_id")
    return await _ensure(
        client,
        AutomationCore(
            name=UPLOAD_AUTOMATION,
            description="Made by `reelgraph up`; the receiver emits the events.",
            trigger=EventTrigger(
                match={"prefect.resource.id": f"{RESOURCE_PREFIX}*"},
                expect={EVENT_CREATED},
                posture=Posture.Reactive,
                # One event is enough, and each one counts: three uploads are three runs.
                threshold=1,
                within=timedelta(0),
            ),
            actions=[
                RunDeployment(
                    source="selected",
                    deployment_id=deployment_id,
                    parameters={name: _exactly(f"event.payload.{name}") for name in names},
                )
            ],
        ),
    )


async def ensure_crash_automation(client: PrefectClient) -> UUID:
    """Mark a flow run as crashed when its heartbeat stops and nothing says how it ended.

    For a process that dies together with its worker: a worker that lives reports it itself.

    Returns:
        Id of the automation.
    """
    ended = ("Completed", "Failed", "Crashed", "Cancelled", "Cancelling", "Paused", "Suspended")
    return await _ensure(
        client,
        AutomationCore(
            name=CRASH_AUTOMATION,
            description="Made by `reelgraph up`; flow processes send a heartbeat every 30 s.",
            trigger=EventTrigger(
                after={"prefect.flow-run.heartbeat"},
                expect={"prefect.flow-run.heartbeat"}
                | {f"prefect.flow-run.{state}" for state in ended},
                match={"prefect.resource.id": ["prefect.flow-run.*"]},
                for_each={"prefect.resource.id"},
                posture=Posture.Proactive,
                threshold=1,
                within=SILENCE_LIMIT,
            ),
            actions=[
                ChangeFlowRunState(
                    state=StateType.CRASHED,
                    name="Crashed",
                    message=f"no heartbeat for {SILENCE_LIMIT.seconds} s",
                )
            ],
        ),
    )


async def _ensure(client: PrefectClient, wanted: AutomationCore) -> UUID:
    known = await client.read_automations_by_name(wanted.name)
    if not known:
        return await client.create_automation(wanted)
    first, *copies = known
    for copy in copies:
        await client.delete_automation(copy.id)
    if AutomationCore.model_validate(first.model_dump(exclude={"id"})) != wanted:
        await client.update_automation(first.id, wanted)
    return first.id


def _exactly(expression: str) -> dict[str, Any]:
    """A parameter with the type and the characters of the value; plain text would lose both."""
    template = f"{{{{ {expression} | tojson }}}}"
    return {
        "__prefect_kind": "json",
        "value": {"__prefect_kind": "jinja", "template": template},
    }
