"""Hosts without bubblewrap: the same verdicts, locked in by Landlock and seccomp.

The builder has little memory here, so that a compiler can run out of it quickly.
"""

import asyncio

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from tests.quick_settings import quick_settings

pytestmark = pytest.mark.sycl

_MEMORY_BYTES = 1 << 30

_GREEDY = """
template <int... I> struct List {};
template <int N, int... I> struct Count : Count<N - 1, N, I...> {};
template <int... I> struct Count<0, I...> { using type = List<I...>; };
template <int N> struct Row { using type = typename Count<900 + N % 2, N>::type; };
template <int N> struct All : All<N - 1> { typename Row<N>::type row; };
template <> struct All<0> {};
"""


@pytest.fixture(scope="module")
def unwrapped(judged):
    evaluator = LocalEvaluator(
        quick_settings(
            device_kinds=("sycl",),
            use_bubblewrap=False,
            builder_memory_bytes=_MEMORY_BYTES,
        )
    )
    yield lambda text: asyncio.run(evaluator.evaluate(judged.request(text)))
    asyncio.run(evaluator.close())


def test_a_compile_that_eats_memory_is_a_verdict_and_the_next_candidate_passes(judged, unwrapped):
    """The builder dies of its limit, and only the builder; the lock is reported."""
    text = judged.right.replace("```sycl\n", f"```sycl\n{_GREEDY}\n", 1)
    text = text.replace("  if (i < count)", "  All<100> all; (void)all;\n  if (i < count)")
    evaluation = unwrapped(text)
    assert evaluation.outcome is EvaluationOutcome.COMPILE_ERROR, evaluation.findings
    assert [f.kind for f in evaluation.findings] == [FindingKind.MEMORY_LIMIT]

    evaluation = unwrapped(judged.right)
    assert evaluation.passed, evaluation.findings
    (isolation,) = (f.value for f in evaluation.evidence if f.name == "isolation")
    assert "landlock" in isolation
    assert "seccomp" in isolation
    assert "bubblewrap" not in isolation
