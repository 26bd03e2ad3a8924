"""The kernel languages a candidate may be written in."""

from enum import StrEnum


class Language(StrEnum):
    """Language of a candidate's device code; also the fence word of its code block."""

    SYCL = "sycl"
    CUDA = "cuda"
