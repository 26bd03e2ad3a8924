"""What an audit looks at is as it was afterwards, whatever its format."""

from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge.comparison.far_elements import ReferenceRuns, far_elements
from evaluator_svc.judge.comparison.output_errors import OutputLines, least_exact, small_columns
from evaluator_svc.judge.tensors.relative_errors import largest_error

Versions = tuple[torch.Tensor, ...]
"""As a candidate wrote it, the reference, that of eager PyTorch, the exact one."""

AUDITS: dict[str, Callable[[Versions], object]] = {
    "largest_error": lambda v: largest_error(v[0], v[3]),
    "least_exact": lambda v: least_exact(
        [OutputLines(actual=v[0], expected=v[1], eager=v[2], exact=v[3])]
    ),
    "small_columns": lambda v: small_columns(
        OutputLines(actual=v[0], expected=v[1], eager=v[2], exact=v[3])
    ),
    "far_elements": lambda v: far_elements(
        v[0], v[1], v[3], ReferenceRuns(perturbed=(v[2],), rounded=()), 1 / 64
    ),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("audit", AUDITS.values(), ids=AUDITS)
def test_an_audit_changes_nothing(audit: Callable[[Versions], object], dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    exact = torch.randn(40, 6, dtype=torch.float64, generator=generator)
    moved = [exact * (1.0 + 1e-4 * torch.randn(40, 6, generator=generator)) for _ in range(3)]
    versions = (*(tensor.to(dtype) for tensor in moved), exact)
    before = [tensor.clone() for tensor in versions]

    audit(versions)

    for tensor, was in zip(versions, before, strict=True):
        assert torch.equal(tensor, was)
