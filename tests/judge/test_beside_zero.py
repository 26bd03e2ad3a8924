"""Elements close to zero, for references that keep what is added to one."""

import pytest

from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution
from tests.judge.judge_tasks import make_task, prepare


@pytest.mark.parametrize("result", ["x.expm1()", "torch.log1p(x) * 2"])
def test_what_is_added_to_one_is_small(result: str) -> None:
    task = make_task(f"\ndef forward(self, x):\n    return {result}\n", rows=64, cols=512)
    prepared = prepare(task)
    changed = with_distribution(prepared, prepared.input_set(5), Distribution.BESIDE_ONE)
    sizes = changed.inputs[0].abs().amax(-1)
    assert float(sizes.min()) <= 2.0**-20
    assert 2.0**-6 < float(sizes.max()) <= 2.0**-4


@pytest.mark.parametrize("seed", [5, 6])
@pytest.mark.parametrize("shape", ["rows, cols", "cols"])
def test_a_reference_with_both_logarithms_has_elements_close_to_one_too(
    shape: str, seed: int
) -> None:
    task = make_task(
        "\ndef forward(self, x):\n    return x.log() + torch.log1p(x)\n",
        rows=64,
        cols=512,
        inputs=f"[torch.rand({shape}) + 0.5]",
    )
    prepared = prepare(task)
    changed = with_distribution(prepared, prepared.input_set(seed), Distribution.BESIDE_ONE)
    x = changed.inputs[0].reshape(-1, 512)
    is_small, is_below = (x < 0.5).all(-1), ((x > 0.9) & (x < 1)).all(-1)
    is_above = (x > 1).all(-1)
    assert bool((is_small | is_below | is_above).all())
    found = [int(rows.count_nonzero()) for rows in (is_small, is_below, is_above)]
    assert found == ([32, 16, 16] if len(x) > 1 else [seed % 2, 1 - seed % 2, 0])
