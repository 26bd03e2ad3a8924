"""What the rules find in object code, or in the assembly that it was made from.

Knows nothing of what is refused: that is each language's own.
"""

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
