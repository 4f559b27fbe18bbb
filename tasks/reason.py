"""reason: the questions, answered over the evidence; every claim cites facts."""

from prefect import task

from engines.contracts.reasoning import ReasonParams
from engines.reasoning import describe, prompt_hashes
from tasks.resources import get_resources
from tasks.run import Run
from tasks.stage import TASK_OPTIONS, Stage, StageRef, run_stage

STAGE = Stage(
    name="reason",
    compute="tasks.compute.meaning:reason",
    params=ReasonParams,
    code=(
        "engines.reasoning",
        "engines.prompts",
        "engines.contracts.reasoning",
        "tasks.compute.meaning",
    ),
    pool="llm",
    timeout_s=3600,
)


@task(name=STAGE.name, **TASK_OPTIONS)
def answer_questions(
    run: Run, seen: dict[str, StageRef], events: StageRef, causes: StageRef, params: ReasonParams
) -> StageRef:
    """Run the stage for one video; ``seen`` holds those stages that found something to say."""
    inputs = {name: ref.document for name, ref in seen.items()}
    inputs |= {"events": events.document, "causes": causes.document}
    params = _resolved(params)
    described = describe(params, server=get_resources().settings.llm_base_url)
    return run_stage(STAGE, run, inputs, params, described, prompts=prompt_hashes(params))


def _resolved(params: ReasonParams) -> ReasonParams:
    """``auto`` means the language model that the settings name, and rules where they name none."""
    if params.engine != "auto":
        return params
    settings = get_resources().settings
    if settings.llm_base_url is None:
        return params.model_copy(update={"engine": "extractive"})
    return params.model_copy(update={"engine": "openai", "model": settings.llm_model or ""})
