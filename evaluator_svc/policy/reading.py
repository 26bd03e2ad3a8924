"""Text meant for readers: what speaks to a judge, and what people would not see.

Used on device code and plans alike; nothing of it is ever obeyed.
"""

import re
from typing import Final

_WORDS: Final = r"(?:\w{1,30}\W{1,3}){0,3}"
_READER: Final = r"(?:judge|grader|reviewer|evaluator|auditor|llm|language model|assistant|ai)s?\b"
_ADDRESS: Final = re.compile(
    rf"""
      \b(?:dear|attention|hello|hey|(?:note|notice|message|instructions?)[ ](?:to|for))\W{{1,3}}
        {_WORDS}{_READER}
    | \b(?:ignore|disregard|forget)\W{{1,3}}{_WORDS}(?:instructions?|rules?|prompt)\b
    | \bthis[ ](?:kernel|code|solution|candidate|submission)[ ]is[ ]{_WORDS}
        (?:legit\w{{0,10}}|honest|genuine|not[ ]cheating|no[ ]cheat|not[ ]a[ ]cheat)\b
    | \b(?:do[ ]not|don't|never)[ ]{_WORDS}(?:reject|flag|penali[sz]e)[ ]
        (?:this|it|me|the[ ](?:kernel|code|candidate|solution))\b
    | \bplease[ ]{_WORDS}(?:accept|approve)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Overrides and isolates of direction, spaces of no width; marks that scripts and emoji need are
# not among them.
_HIDDEN: Final = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\u2060]|(?<=.)\ufeff", re.DOTALL)

_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")


def speaks_to_reader(text: str) -> re.Match[str] | None:
    """Return where a text addresses who reads it; None: nowhere."""
    return _ADDRESS.search(text)


def control_character(text: str) -> int:
    """Return the offset of the first one beyond blanks, tabs and ends of lines; -1: none."""
    match = _CONTROL.search(text)
    return -1 if match is None else match.start()


def hidden_character(text: str) -> int:
    """Return the offset of the first character that people do not see; -1: there is none."""
    match = _HIDDEN.search(text)
    return -1 if match is None else match.start()
