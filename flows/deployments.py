"""What the Prefect server knows of us: flows by module path, on the pools that fit them."""

import asyncio
from typing import Any

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.deployments.runner import RunnerDeployment
from prefect.types.entrypoint import EntrypointType

from flows.deployments_automation import ensure_crash_automation, ensure_upload_automation
from flows.mine_corpus import mine_corpus
from flows.on_upload import on_upload
from flows.placement import run_stage_here
from flows.process_bucket import process_bucket
from flows.process_video import process_video

CPU_POOL = "cpu"


def register(api_url: str) -> None:
    """Create or bring up to date the deployments and automations.

    Args:
        api_url: of the Prefect server; PREFECT_API_URL of this process must name the same.
    """
    del api_url
    asyncio.run(_register())


async def _register() -> None:
    deployments = {
        "process-video": _deployment(
            process_video, "process-video", CPU_POOL, "One video by bucket and key."
        ),
        "process-bucket": _deployment(
            process_bucket, "process-bucket", CPU_POOL, "Every video below a prefix."
        ),
        "mine-corpus": _deployment(
            mine_corpus,
            "mine-corpus",
            CPU_POOL,
            "What causes what over all videos below a prefix.",
            at_a_time=1,
        ),
        "on-upload": _deployment(
            on_upload, "on-upload", CPU_POOL, "What an uploaded object starts."
        ),
    }
    for pool in ("gpu", "llm"):
        deployments[f"run-stage-{pool}"] = _deployment(
            run_stage_here, pool, pool, "One stage of another run, on the pool that fits it."
        )
    ids = {name: await deployment.aapply() for name, deployment in deployments.items()}
    async with get_client() as client:
        await ensure_upload_automation(client, ids["on-upload"])
        await ensure_crash_automation(client)


def _deployment(
    flow: Flow[..., Any], name: str, pool: str, description: str, *, at_a_time: int | None = None
) -> RunnerDeployment:
    """A flow on a pool, found by module path: the file form would give it a second identity.

    Runs beyond ``at_a_time`` wait for those before them.
    """
    return RunnerDeployment.from_flow(
        flow,
        name=name,
        work_pool_name=pool,
        entrypoint_type=EntrypointType.MODULE_PATH,
        description=description,
        concurrency_limit=at_a_time,
    )
