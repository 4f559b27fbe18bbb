"""The extractive engine: claims assembled by rules, deterministic, true by construction."""

import hashlib
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files

from engines.contracts.reasoning import AnswerKind
from engines.reasoning.rules.case import Case, Claim
from engines.reasoning.rules.causal import next_, what_if, why
from engines.reasoning.rules.chapters import chapters
from engines.reasoning.rules.timeline import consistent, intent, order, summary

Rule = Callable[[Case], tuple[Claim, ...]]

RULES: dict[AnswerKind, Rule] = {
    "summary": summary,
    "chapters": chapters,
    "why": why,
    "next": next_,
    "what_if": what_if,
    "order": order,
    "intent": intent,
    "consistent": consistent,
}

_SOURCES = (
    ("engines.reasoning.rules", ("case.py", "causal.py", "chapters.py", "links.py", "timeline.py")),
    (
        "engines.reasoning",
        (
            "contradictions.py",
            "evidence.py",
            "anchors.py",
            "tokens.py",
            "answers.py",
            "stepping.py",
        ),
    ),
    (
        "engines.prompts",
        ("normalise.py", "synonyms.json", "untrusted.py", "instruction_patterns.json"),
    ),
)


@lru_cache(maxsize=1)
def revision() -> str:
    """Hex SHA-256 of the rules' own source and tables: what a model's weights are to a model."""
    digest = hashlib.sha256()
    for package, names in _SOURCES:
        for name in names:
            content = (files(package) / name).read_bytes()
            digest.update(f"{package}/{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
