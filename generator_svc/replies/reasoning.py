"""The words before a reply's candidate: what it sets out to do."""

import re
from typing import Final

from generator_svc.replies.json_reply import markdown_of
from generator_svc.replies.plain_text import plain_text

LONGEST_IDEA: Final = 320
"""Characters."""

_THOUGHTS: Final = re.compile(r"</(?:think|thinking|reasoning|analysis)>", re.I)
_CANDIDATE: Final = re.compile(r"^[ \t]*+(?:`{3}|~{3}|<{5,9}[ \t]*+SEARCH)", re.M)
_HEADING: Final = re.compile(r"^[ \t]*+(?:#++|<)[^\n]*+$", re.M)
_SENTENCE_END: Final = re.compile(r"[.!?](?= )")


def idea_of(reply: str) -> str:
    """Return how a reply's reasoning begins: whole sentences in one line, "" where it has none.

    At most `LONGEST_IDEA` characters; a longer first sentence is cut.
    """
    said = _THOUGHTS.split(markdown_of(plain_text(reply)))[-1]
    said = _HEADING.sub("", _CANDIDATE.split(said, maxsplit=1)[0])
    line = " ".join(said.replace("`", "'").split())
    if len(line) <= LONGEST_IDEA:
        return line
    ends = [found.end() for found in _SENTENCE_END.finditer(line, 0, LONGEST_IDEA + 1)]
    return line[: ends[-1]] if ends else f"{line[: LONGEST_IDEA - 1].rstrip()}…"
