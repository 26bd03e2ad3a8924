"""What an exported file is about: each file has values of its own in place of these."""

from typing import Any, Final

TASK: Final = "double"
"""Name of the task."""
NAMESPACE: Final = "kfoundry"
"""Of its operators in torch."""
DIGEST: Final = "00000000"
"""Of the kernels in this file: part of the operator's name."""
LANGUAGE: Final = "sycl"
"""Of the kernels: "sycl" runs on the CPU, "cuda" on NVIDIA GPUs."""
ARCHITECTURE: Final = "spir64-cpu"
"""That the object code is for."""
LIMITS: Final = {
    "sub_group_size": 16,
    "shared_bytes": 65536,
    "max_block": 1024,
}
"""Of the device that the kernels were judged on, as plans may ask for them."""
TRAINING: Final = True
"""Whether the module was judged in training mode."""
IGNORES_MODE: Final = True
"""Whether it computes the same in both modes."""
TF32: Final = False
"""Whether float32 products may be rounded to TF32."""
CAST: Final = ""
"""What weights and inputs are cast to before a call; empty: they are left as they are."""
DETERMINISTIC: Final = True
"""Whether repeated calls gave equal bits."""
REFERENCE: Final = """
import torch

rows = 4


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.randn(rows)]
"""
"""The task's reference: it runs wherever no kernel here was judged for a call."""
INPUTS: Final = ("x",)
"""Names of the tensors that forward takes, in order."""
OUTPUTS: Final = ("out",)
"""Names of the tensors that it returns."""
CONTAINER: Final[str] = "tensor"
"""What it returns them in: "tensor" where it is one, else "tuple" or "list"."""
WORKLOADS: Final[tuple[dict[str, Any], ...]] = (
    {
        "sizes": {"rows": 4},
        "tensors": {"x": ("float32", (4,)), "out": ("float32", (4,))},
        "weights": {},
        "scalars": {},
    },
)
"""What was judged, each workload with its sizes and its tensors. `weights` are parameters and
buffers: their dotted names by the names that plans have for them."""
SPECIALISATIONS: Final[tuple[dict[str, Any], ...]] = ()
"""Kernels, those first that are tried first: the plan as a function, its workloads as positions in
`WORKLOADS`, and object code by its macros."""
GRADS: Final[tuple[str, ...]] = ()
"""Of a found backward pass: what its plan calls the gradient by each result of floats, in order."""
GRADIENTS: Final[tuple[tuple[str, str], ...]] = ()
"""Its results by their names in the plan, each with the input or weight that it is by."""
BACKWARD: Final[tuple[dict[str, Any], ...]] = ()
"""Its kernels, as in `SPECIALISATIONS`; empty: gradients are the reference's."""
BACKWARD_DETERMINISTIC: Final = True
"""Whether repeated calls of it gave equal bits."""
OBJECTS: Final[tuple[str, ...]] = ()
"""Object code, compressed, in base 85."""
