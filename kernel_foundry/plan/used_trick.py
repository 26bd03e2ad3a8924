"""Which trick a candidate's code uses; what its comments say is no use of it."""

import re
from collections.abc import Collection
from typing import Final

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.trick import named_trick
from kernel_foundry.plan.source_text import strip_comments

_PLAN_LEXEME: Final = re.compile(
    r"""\"{3}.*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*+"?|'(?:\\.|[^'\\\n])*+'?"""
    r"|(?P<comment>\#[^\n]*)",
    re.DOTALL,
)


def used_trick(tricks: Collection[str], source: KernelSource) -> str:
    """Return the first of the tricks whose words stand in the source's code; "" for none."""
    if not tricks:
        return ""
    plan = _PLAN_LEXEME.sub(lambda m: " " if m["comment"] else m[0], source.plan)
    return named_trick(tricks, strip_comments(source.device_code), plan)
