"""What an object-created event starts: one run for one row of the inbox."""

from prefect import flow, get_run_logger

from engines.errors import ReelgraphError, RefusedError
from flows.process_video import process_video
from tasks.resources import get_resources
from tasks.store import inbox


@flow(name="on-upload", flow_run_name="{bucket}/{key}", persist_result=False)
def on_upload(
    bucket: str, key: str, inbox_id: int, etag: str | None = None, version_id: str | None = None
) -> str:
    """Process an uploaded object, once however often it was announced.

    Args:
        bucket: where it lies.
        key: its key, decoded once by the receiver.
        inbox_id: the row of ``reel.event_inbox`` that stands for this version.
        etag: of the version announced; shown, since the fetch pins what it finds.
        version_id: of the version announced, where the bucket keeps versions.

    Returns:
        ``processed``, or why nothing was done.
    """
    db, logger = get_resources().db, get_run_logger()
    if not inbox.claim(db, inbox_id):
        logger.info("%s/%s (%s): taken by another run", bucket, key, etag)
        return "taken by another run"
    try:
        run_id = process_video(bucket, key, version_id)
    except RefusedError as error:
        inbox.mark(db, inbox_id, "ignored", reason=f"{error.code}: {error}")
        return str(error)
    except ReelgraphError as error:
        inbox.mark(db, inbox_id, "dead", reason=f"{error.code}: {error}")
        raise
    inbox.mark(db, inbox_id, "done", run_id=run_id)
    return "processed"
