"""What the Prefect server knows of us: flows by module path, on the pools that fit them."""

import asyncio

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
        "process-video": RunnerDeployment.from_flow(
            process_video,
            name="process-video",
            work_pool_name=CPU_POOL,
            entrypoint_type=EntrypointType.MODULE_PATH,
            description="One video by bucket and key.",
        ),
        "process-bucket": RunnerDeployment.from_flow(
            process_bucket,
            name="process-bucket",
            work_pool_name=CPU_POOL,
            entrypoint_type=EntrypointType.MODULE_PATH,
            description="Every video below a prefix.",
        ),
        "mine-corpus": RunnerDeployment.from_flow(
            mine_corpus,
            name="mine-corpus",
            work_pool_name=CPU_POOL,
            entrypoint_type=EntrypointType.MODULE_PATH,
            description="What causes what over all videos below a prefix.",
        ),
        "on-upload": RunnerDeployment.from_flow(
            on_upload,
            name="on-upload",
            work_pool_name=CPU_POOL,
            entrypoint_type=EntrypointType.MODULE_PATH,
            description="What an uploaded object starts.",
        ),
    }
    for pool in ("gpu", "llm"):
        deployments[f"run-stage-{pool}"] = RunnerDeployment.from_flow(
            run_stage_here,
            name=pool,
            work_pool_name=pool,
            entrypoint_type=EntrypointType.MODULE_PATH,
            description="One stage of another run, on the pool that fits it.",
        )
    ids = {name: await deployment.aapply() for name, deployment in deployments.items()}
    async with get_client() as client:
        await ensure_upload_automation(client, ids["on-upload"])
        await ensure_crash_automation(client)
