"""Which branches decide whether a block is reached, and kernels that are too tangled to follow."""

from pathlib import Path

import pytest

from evaluator_svc import spirv
from evaluator_svc.inspector.control_dependence import deciding_blocks
from evaluator_svc.inspector.flow_rules import flow_report
from evaluator_svc.inspector.from_spirv.flow import flows
from evaluator_svc.inspector.kernel_flow import Source
from evaluator_svc.inspector.value_sources import ValueSources

_PLAIN = Path(__file__).parents[1] / "policy" / "kernels" / "lost_updates.spv"


@pytest.mark.parametrize(
    ("successors", "expected"),
    [
        ({1: (2, 3), 2: (4,), 3: (4,), 4: ()}, {1: set(), 2: {1}, 3: {1}, 4: set()}),
        ({1: (2,), 2: (3, 4), 3: (2,), 4: ()}, {1: set(), 2: {2}, 3: {2}, 4: set()}),
        # An early return decides all that follows.
        ({1: (2, 3), 2: (), 3: (4,), 4: ()}, {1: set(), 2: {1}, 3: {1}, 4: {1}}),
        # An endless loop behind a branch.
        ({1: (2, 3), 2: (2,), 3: ()}, {1: set(), 2: {1}, 3: {1}}),
        ({1: (2, 2), 2: ()}, {1: set(), 2: set()}),
    ],
    ids=["both ways", "loop", "early return", "endless", "one way"],
)
def test_branches_decide_what_some_ways_lead_past(
    successors: dict[int, tuple[int, ...]], expected: dict[int, set[int]]
) -> None:
    assert deciding_blocks(successors) == expected


def test_a_tangle_is_given_up() -> None:
    """Each of many branches leads back to the beginning: all decide all that is before them."""
    count = 2_000
    successors = {block: (block + 1, 1) for block in range(1, count)} | {count: ()}
    assert deciding_blocks(successors) is None


def test_a_kernel_is_given_up_when_it_takes_too_long() -> None:
    (flow, *_) = flows(spirv.parse(_PLAIN.read_bytes()))
    assert ValueSources(flow, 10_000).is_settled
    assert not ValueSources(flow, 10).is_settled


def test_one_function_is_followed_wherever_it_is_called() -> None:
    """The number of the group is found behind the call's argument."""
    found = {flow.name: flow for flow in flows(spirv.parse(_PLAIN.read_bytes()))}
    sources = ValueSources(found["in_a_function"], 10_000)
    places = [
        sources.of(step.address) for _, step in found["in_a_function"].steps() if step.address
    ]
    assert any(place & Source.GROUP_X for place in places)
    assert [u.kernel for u in flow_report([found["in_a_function"]]).updates] == ["in_a_function"]
