"""What the rules find in object code, or in the assembly that it was made from.

Knows nothing of what is refused: that is each language's own.
"""

from collections.abc import Iterable

from evaluator_svc.policy.finding import told
from evaluator_svc.policy.ptx_object import check_ptx
from evaluator_svc.policy.spirv_object import check_spirv
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.language import Language


def check_object(
    code: bytes, kernels: tuple[str, ...] = (), language: Language = Language.SYCL
) -> tuple[Finding, ...]:
    """Return why code may not be loaded, and what is odd about it; empty: nothing.

    It may be loaded when no finding is an error.

    Args:
        code: SPIR-V for SYCL, PTX for CUDA.
        kernels: Names of kernels that must be in it.
        language: Of the source.
    """
    check = check_ptx if language is Language.CUDA else check_spirv
    return check(code, kernels)


def narrow_findings(formats: Iterable[str], allowed: Iterable[str]) -> tuple[Finding, ...]:
    """Return what is to be told of narrow number formats; it never refuses anything.

    Args:
        formats: What the object code computes in, as `ObjectFacts.formats`.
        allowed: Formats that the task has itself.
    """
    beyond = sorted(set(formats) - set(allowed))
    if not beyond:
        return ()
    message = f"the kernels compute in {', '.join(beyond)}, which the task has not"
    hint = "the precision audit tells whether the result is as exact as the task asks"
    return (told("object.narrow_float", message, hint),)
