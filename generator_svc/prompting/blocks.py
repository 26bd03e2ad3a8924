"""The building blocks that a task's prompt offers: those that could serve its graph."""

from generator_svc.experience.structures import ATTENTION, CONVOLUTION, PRODUCT, structures_of
from kernel_foundry.domain.admission import Admission
from kernel_foundry.languages import language_named


def blocks_text(admission: Admission) -> str:
    """Return the texts on building blocks for a task; "" where its language has none.

    Blocks for rows are always among them, all of them where the graph is not known.
    """
    language = language_named(admission.device.language.value)
    if not admission.workloads or not admission.workloads[0].graph:
        return language.blocks()
    found = structures_of(admission)
    serving = {
        "rows": True,
        "product": PRODUCT in found,
        "attention": ATTENTION in found,
        "convolution": CONVOLUTION in found,
        "linear_example": PRODUCT in found,
    }
    return language.blocks(*(name for name, serves in serving.items() if serves))
