"""Every video below a prefix: one run of `process-video` each, paced by the work pool."""

from prefect import flow, get_run_logger
from prefect.runtime import flow_run

from flows.parameters import PipelineParams
from flows.prefect_api import PROCESS_VIDEO, PrefectApi
from tasks.resources import get_resources


@flow(name="process-bucket", flow_run_name="{bucket}/{prefix}", persist_result=False)
def process_bucket(
    bucket: str,
    prefix: str = "",
    params: PipelineParams = PipelineParams(),  # noqa: B008 - frozen, and the form's default
) -> int:
    """Start a run for each object; what is known already costs each run only its look-ups.

    Args:
        bucket: where the videos lie.
        prefix: only keys that begin with it.
        params: parameters of the stages, as in `process-video`; with one changed this is a
            backfill of the stages that it reaches.

    Returns:
        How many runs were started.
    """
    world = get_resources()
    started = 0
    with PrefectApi(world.api_url) as api:
        for version in world.objects.list(bucket, prefix):
            parameters = {
                "bucket": bucket,
                "key": version.ref.key,
                "params": params.model_dump(mode="json"),
            }
            # A retry of this flow run does not start the same run twice.
            api.start(PROCESS_VIDEO, parameters, idempotency_key=f"{flow_run.id}/{version.ref.key}")
            started += 1
    get_run_logger().info("%d runs started below %s/%s", started, bucket, prefix)
    return started
