"""Prompt-anchored reasoning: evidence in, cited claims out.

    items = evidence.build(shots=..., listen=..., ...)
    document = reason.reason(items, causes, events, params, client=None, deadline_s=60)

``describe`` and ``prompt_hashes`` give the stage its cache key without loading anything.
"""

import hashlib

from engines.contracts.reasoning import ReasonParams
from engines.errors import UsageError
from engines.prompts.render import PromptTemplate
from engines.reasoning.anchors import CONSTRAINT_VERSION
from engines.reasoning.answers import EXTRACTIVE, extractive_model
from engines.reasoning.asking import schema_text
from engines.reasoning.replies import Reply, SceneReply
from engines.reasoning.rules import revision
from engines.runtime.manifest import EngineDescription


def describe(params: ReasonParams, *, server: str | None = None) -> EngineDescription:
    """What would reason, told without asking it.

    Args:
        params: ``engine`` and ``model`` are used; ``auto`` counts as the rules: resolve it first.
        server: base address of the server, without credentials; for ``openai``.

    Raises:
        UsageError: ``openai`` without a model's name.
    """
    if params.engine != "openai":
        return EngineDescription(
            engine=f"{EXTRACTIVE}/1",
            model=extractive_model(),
            model_revision=revision(),
            device="cpu",
            threads=1,
        )
    if not params.model:
        msg = "the engine openai needs the name of a model (model='')"
        raise UsageError(msg)
    # A server's weights cannot be hashed from here: what it is asked for is all there is, and
    # every answer keeps the name that the server returned.
    named = f"{server or ''}\0{params.model}\0{revision()}"
    return EngineDescription(
        engine="openai/1",
        model=params.model,
        model_revision=hashlib.sha256(named.encode()).hexdigest(),
        device=server or "server",
        threads=1,
    )


def prompt_hashes(params: ReasonParams) -> dict[str, str]:
    """Hashes of all that is asked, for the cache key: templates, schemas, rules, constraints."""
    hashes = {"rules": revision(), "constraints": CONSTRAINT_VERSION}
    if params.engine != "openai":
        return hashes
    for name in (*params.questions, "scene"):
        template = PromptTemplate.load(name)
        hashes[template.prompt] = template.template_hash
    for reply_type in (Reply, SceneReply):
        text = schema_text(reply_type)
        hashes[f"schema:{reply_type.__name__}"] = hashlib.sha256(text.encode()).hexdigest()
    return hashes
