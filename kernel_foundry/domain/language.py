"""The kernel languages a candidate may be written in."""

from enum import StrEnum
from typing import Self

from kernel_foundry.languages import LANGUAGES


class Language(StrEnum):
    """Language of a candidate's device code; also the fence word of its code block.

    Those that come with the system have members; any other that is registered with
    `kernel_foundry.languages` is a value as well.
    """

    SYCL = "sycl"
    CUDA = "cuda"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str) or value not in LANGUAGES:
            return None
        member = str.__new__(cls, value)
        member._name_, member._value_ = value.upper(), value
        # Kept where members are found, so that there is one of it.
        return cls._value2member_map_.setdefault(value, member)  # type: ignore[return-value]
