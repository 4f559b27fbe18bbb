"""Templates to messages: strict, sandboxed, and named by a hash of what they say.

    template = PromptTemplate.load("why")
    prompt = template.render(HopVariables(...))
    prompt.prompt, prompt.prompt_hash, prompt.messages

A template is a Markdown file with front matter (name, version, family, variables) and one section
per message (``# system``, ``# user``). Its ``template_hash`` covers the files that it includes.
The sections are split before anything is filled in, so no text of a video can open a message.
"""

import hashlib
import json
import re
from functools import lru_cache
from importlib.resources import files
from typing import Literal, Self

from jinja2 import BaseLoader, StrictUndefined, TemplateNotFound, meta
from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import Field

from engines.contracts.base import Contract
from engines.contracts.reasoning import EvidenceItem
from engines.errors import EngineError, UsageError
from engines.prompts import variables as variable_classes
from engines.prompts.untrusted import INSTRUCTION_LIKE, WITHHELD, escape, fence
from engines.prompts.variables import EvidenceVariables

Role = Literal["system", "user"]
Family = Literal["role-constraint-example", "multi-hop", "robust", "context-anchoring"]

_FRONT_MATTER = re.compile(r"\A---\n(?P<head>.*?)\n---\n(?P<body>.*)\Z", re.DOTALL)
_SECTION = re.compile(r"^# (system|user)\n", re.MULTILINE)
_NAME = re.compile(r"\A[a-z_]+\Z")


class Message(Contract):
    """One message of a chat."""

    role: Role
    content: str


class RenderedPrompt(Contract):
    """What is sent, and what it was made from."""

    messages: tuple[Message, ...] = Field(min_length=1)
    prompt: str
    """Name and version, e.g. ``why@1``."""
    prompt_hash: str
    """Hex SHA-256 over the template hash and every message."""

    @property
    def text(self) -> str:
        """All messages as one text, for counting and for golden files."""
        return "\n".join(f"# {m.role}\n{m.content}" for m in self.messages)


def evidence_line(item: EvidenceItem) -> str:
    """One item as a line of a prompt: id, times, our note, and the words in a data field."""
    head = f"[{item.ref}] {item.start_s:.2f}-{item.end_s:.2f} s"
    note = f" ({item.note})" if item.note else ""
    if INSTRUCTION_LIKE in item.flags:
        return f"{head}{note} {WITHHELD}"
    words = fence(item.text) if item.untrusted else escape(item.text)
    return f"{head}{note} {words}"


def _source(name: str) -> str:
    return (files("engines.prompts") / f"{name}.md").read_text(encoding="utf-8")


class _PackageLoader(BaseLoader):
    """Included parts, ``_name``, from this package only."""

    def get_source(self, environment: object, template: str) -> tuple[str, str | None, None]:
        """Source of an included part; its front matter, if any, is not expected."""
        del environment
        if not _NAME.match(template):
            raise TemplateNotFound(template)
        try:
            return _source(template), None, None
        except FileNotFoundError as error:
            raise TemplateNotFound(template) from error


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        loader=_PackageLoader(),
        undefined=StrictUndefined,
        # Not HTML: the filters below escape what is not ours.
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.filters["evidence"] = evidence_line
    environment.filters["plain"] = escape
    environment.filters["data"] = fence
    return environment


class PromptTemplate(Contract):
    """A template as it lies in this package."""

    name: str
    version: int = Field(ge=1)
    family: Family
    variables: str
    """Name of the class in engines.prompts.variables that it is filled from."""
    sections: tuple[tuple[Role, str], ...]
    template_hash: str
    """Hex SHA-256 of the source and of everything it includes."""

    @classmethod
    def load(cls, name: str) -> Self:
        """Read and check a template.

        Raises:
            UsageError: no template has this name.
            EngineError: the file is not a template (front matter, sections, syntax).
        """
        if not _NAME.match(name) or name.startswith("_"):
            msg = f"{name!r} is not the name of a template; there are {', '.join(names())}"
            raise UsageError(msg)
        try:
            source = _source(name)
        except FileNotFoundError as error:
            msg = f"no template {name!r}; there are {', '.join(names())}"
            raise UsageError(msg) from error
        head, sections = _parse(name, source)
        return cls(
            name=head["name"],
            version=int(head["version"]),
            family=head["family"],
            variables=head["variables"],
            sections=sections,
            template_hash=_hash_with_includes(source),
        )

    @property
    def prompt(self) -> str:
        """Name and version, e.g. ``why@1``."""
        return f"{self.name}@{self.version}"

    def render(self, variables: EvidenceVariables) -> RenderedPrompt:
        """Fill the template.

        Args:
            variables: an instance of exactly the class that the template names.

        Raises:
            UsageError: another class of variables.
            EngineError: the template uses a variable that its class does not have.
        """
        wanted = getattr(variable_classes, self.variables)
        if type(variables) is not wanted:
            msg = f"{self.prompt} takes {self.variables}, not {type(variables).__name__}"
            raise UsageError(msg)
        values = {name: getattr(variables, name) for name in type(variables).model_fields}
        environment = _environment()
        try:
            messages = tuple(
                Message(role=role, content=environment.from_string(text).render(values).strip())
                for role, text in self.sections
            )
        except TemplateError as error:
            msg = f"template {self.prompt} cannot be rendered: {error}"
            raise EngineError(msg) from error
        whole = json.dumps([self.template_hash, [[m.role, m.content] for m in messages]])
        return RenderedPrompt(
            messages=messages,
            prompt=self.prompt,
            prompt_hash=hashlib.sha256(whole.encode()).hexdigest(),
        )


def names() -> tuple[str, ...]:
    """Every template of this package, without included parts."""
    found = (p.name for p in files("engines.prompts").iterdir() if p.name.endswith(".md"))
    return tuple(sorted(n.removesuffix(".md") for n in found if not n.startswith("_")))


def _parse(name: str, source: str) -> tuple[dict[str, str], tuple[tuple[Role, str], ...]]:
    match = _FRONT_MATTER.match(source)
    if match is None:
        msg = f"template {name}: no front matter between two lines of ---"
        raise EngineError(msg)
    pairs = (line.split(":", 1) for line in match["head"].splitlines() if line.strip())
    head = {key.strip(): value.strip() for key, value in pairs}
    missing = {"name", "version", "family", "variables"} - head.keys()
    if missing or head["name"] != name or not hasattr(variable_classes, head["variables"]):
        msg = f"template {name}: front matter lacks or mistakes {sorted(missing) or 'a value'}"
        raise EngineError(msg)
    parts = _SECTION.split(match["body"])
    roles, texts = parts[1::2], parts[2::2]
    if not roles:
        msg = f"template {name}: no section '# system' or '# user'"
        raise EngineError(msg)
    sections: tuple[tuple[Role, str], ...] = tuple(
        ("system" if role == "system" else "user", text)
        for role, text in zip(roles, texts, strict=True)
    )
    return head, sections


def _hash_with_includes(source: str) -> str:
    digest = hashlib.sha256(source.encode())
    included = meta.find_referenced_templates(_environment().parse(source))
    for name in sorted({n for n in included if n is not None}):
        digest.update(f"\0{name}\0{_hash_with_includes(_source(name))}".encode())
    return digest.hexdigest()
