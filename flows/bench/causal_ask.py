"""The language model of the rows that have nothing else: the one that the settings name."""

from collections.abc import Callable

from pydantic import BaseModel

from engines.prompts.render import Message
from engines.reasoning.chat import ChatFailedError, ChatRequest
from engines.reasoning.openai_client import OpenAIClient
from tasks.settings import get_settings

DEADLINE_S = 120.0
MAX_TOKENS = 1500


class _Lines(BaseModel):
    """A plain answer, line by line."""

    lines: list[str]


def configured_model() -> Callable[[str], str] | None:
    """Prompt in, text out; None where no model is configured.

    A question that the model fails to answer counts as an empty answer.
    """
    settings = get_settings()
    if settings.llm_base_url is None or settings.llm_model is None:
        return None
    client = OpenAIClient(settings.llm_base_url, settings.llm_model, api_key=settings.llm_api_key)

    def ask(prompt: str) -> str:
        request = ChatRequest(
            messages=(Message(role="user", content=prompt),),
            schema_name="lines",
            max_output_tokens=MAX_TOKENS,
        )
        try:
            return "\n".join(client.ask(request, _Lines, DEADLINE_S).value.lines)
        except ChatFailedError:
            return ""

    return ask
