"""The building blocks that a task's prompt offers: those that could serve its graph."""

from typing import Final

from kernel_foundry.domain.admission import Admission
from kernel_foundry.languages import language_named

_PRODUCTS: Final = ("mm", "bmm", "addmm", "baddbmm", "addbmm", "matmul", "linear", "einsum", "mv")


def blocks_text(admission: Admission) -> str:
    """Return the texts on building blocks for a task; "" where its language has none.

    Blocks for rows are always among them, all of them where the graph is not known.
    """
    graph = admission.workloads[0].graph if admission.workloads else ()
    names = {node.op.removeprefix("aten.").partition(".")[0] for node in graph}
    convolves = any("conv" in name for name in names)
    multiplies = convolves or not names.isdisjoint(_PRODUCTS)
    attends = any("attention" in name for name in names)
    attends = attends or (multiplies and any("softmax" in name for name in names))
    serving = {
        "rows": True,
        "product": multiplies or attends,
        "attention": attends,
        "convolution": convolves,
        "linear_example": multiplies or attends,
    }
    language = language_named(admission.device.language.value)
    return language.blocks(*(name for name, serves in serving.items() if serves or not names))
