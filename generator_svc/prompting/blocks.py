"""The building blocks that a task's prompt offers: those that could serve its graph and device."""

from typing import Final

from generator_svc.experience.structures import ATTENTION, CONVOLUTION, PRODUCT, structures_of
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.language import Language
from kernel_foundry.languages import language_named

_HOPPER: Final = "sm_90"


def blocks_text(admission: Admission) -> str:
    """Return the texts on building blocks for a task; "" where its language has none.

    Blocks for rows are always among them. Where the graph is not known, so are all that run on the
    device: products by mma.sync only on GPUs that have no wgmma.
    """
    device = admission.device
    language = language_named(device.language.value)
    is_known = bool(admission.workloads and admission.workloads[0].graph)
    found = structures_of(admission) if is_known else {PRODUCT, ATTENTION, CONVOLUTION}
    has_wgmma = device.language is not Language.CUDA or device.architecture == _HOPPER
    serving = {
        "rows": True,
        "product": has_wgmma and PRODUCT in found,
        "mma_product": not has_wgmma and PRODUCT in found,
        "attention": has_wgmma and ATTENTION in found,
        "convolution": has_wgmma and CONVOLUTION in found,
        "linear_example": has_wgmma and PRODUCT in found,
    }
    return language.blocks(*(name for name, serves in serving.items() if serves))
