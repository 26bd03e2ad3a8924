"""Recipes read the graphs that there are: generated workloads need not have one."""

from dataclasses import replace

from kernel_foundry.domain.admission import Admission, GraphNode
from kernel_foundry.domain.task import Tolerance
from tests.domain_values import workload_admission
from tests.judge.judge_tasks import DEVICE

_NODE = GraphNode(name="x", op="placeholder", arguments=(), keywords=(), dtype="", shape=())


def test_generated_workloads_without_a_graph_are_left_out() -> None:
    own = workload_admission("own", graph=(_NODE,))
    odd = workload_admission("odd", held_out=True, is_generated=True, graph=(_NODE,))
    tiny = workload_admission("tiny", held_out=True, is_generated=True)
    admission = Admission(
        task="t", device=DEVICE, workloads=(own, odd, tiny), tolerance=Tolerance(rtol=1e-4, atol=0)
    )
    assert admission.with_graphs.workloads == (own, odd)
    # What the task names and nothing could export stays, for recipes to refuse.
    bare = replace(admission, workloads=(replace(own, graph=()), odd))
    assert bare.with_graphs.workloads == bare.workloads
