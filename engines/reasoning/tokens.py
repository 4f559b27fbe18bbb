"""How many tokens a text costs, where no server has said so.

A stated estimate, not a tokenizer: a third of a token for each letter, digit or space of ASCII
text would be too many, a fifth too few; byte-pair vocabularies give about four characters per
token for English, about two for digits and punctuation, and one per character elsewhere. It
errs upward, since it guards a budget.
"""

import math
import re

_DENSE = re.compile(r"[!-@\[-`{-~]")
"""Digits and punctuation of ASCII."""
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_CHARS_PER_TOKEN = 4
_DENSE_CHARS_PER_TOKEN = 2


def estimate(text: str) -> int:
    """Tokens of a text, rounded up; zero for an empty one."""
    foreign = 0 if text.isascii() else len(_FOREIGN.findall(text))
    dense = len(_DENSE.findall(text))
    plain = len(text) - foreign - dense
    return math.ceil(plain / _CHARS_PER_TOKEN + dense / _DENSE_CHARS_PER_TOKEN + foreign)
