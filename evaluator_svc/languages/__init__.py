"""The kernel languages that candidates are judged in, a backend for each.

Plans, prompts and hints ask the definition of the same name in `kernel_foundry/languages`.
docs/new-language.md lists all that a new language needs.
"""

from collections.abc import Iterable

from evaluator_svc.languages.backend import LanguageBackend, Toolchain
from evaluator_svc.languages.cuda import CUDA
from evaluator_svc.languages.sycl import SYCL
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.shown_value import shown

__all__ = [
    "BACKENDS",
    "LanguageBackend",
    "Toolchain",
    "backend_of",
    "check_kinds",
    "language_of_kind",
]

BACKENDS: dict[Language, LanguageBackend] = {backend.language: backend for backend in (SYCL, CUDA)}


def backend_of(language: Language) -> LanguageBackend:
    """Return the backend of a language."""
    return BACKENDS[language]


def check_kinds(kinds: Iterable[str]) -> None:
    """Refuse a kind of device that runs no language.

    Raises:
        InvalidArgumentError: it says which, and which there are.
    """
    known = [kind for backend in BACKENDS.values() for kind in backend.device_kinds]
    for kind in kinds:
        if kind not in known:
            raise InvalidArgumentError(
                f"no device kind {shown(kind)}: expected {', '.join(known)}", field="device_kinds"
            )


def language_of_kind(kind: str) -> Language:
    """Return the language that devices of a kind run."""
    return next(b.language for b in BACKENDS.values() if kind in b.device_kinds)
