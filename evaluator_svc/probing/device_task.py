"""A small task, and candidates for it that are right, wrong in known places, endless or stray.

They are judged in `device.py`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task, Workload

ELEMENTS: Final = 61 * 257
"""Elements of the output: no multiple of any work-group."""

PLANTED: Final = (5, 77, 1000, ELEMENTS - 1)
"""Where the kernel of `_wrong_in_places` (`device.py`) writes NaN, infinity, and values that are
slightly off."""

TASK: Final = Task(
    name="device_probe",
    reference="""
import torch
from torch import nn

ROWS = 61
COLS = 257

class Model(nn.Module):
    def forward(self, x):
        return 2.0 * x + 1.0

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return []
""",
    workloads=(Workload(name="default"),),
)

_SHELLS: Final[Mapping[Language, str]] = MappingProxyType(
    {
        Language.SYCL: """
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void probe(const float* x, float* out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i >= count) return;
  const float right = 2.0f * x[i] + 1.0f;
  BODY
}
""",
        Language.CUDA: """
extern "C" __global__ void probe(const float* x, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float right = 2.0f * x[i] + 1.0f;
  BODY
}
""",
    }
)

_PLAN: Final = """
def launch(x, out):
    probe[cdiv(x.numel(), 64), 64](x, out, x.numel())
"""

RIGHT: Final = "out[i] = right;"
UNWRITTEN_END: Final = "if (i != count - 1) out[i] = right;"
WRONG_IN_PLACES: Final = (
    "out[i] = i == 5 ? NAN : i == 77 ? INFINITY : right + (i == 1000 || i == count - 1);"
)
ENDLESS: Final = "for (volatile float* v = out; v[i] != 12345.0f;) v[i] = right;"
STRAY: Final = "out[(long long)i * 1000000000LL + 1000000000000LL] = right;"


def candidate(language: Language, body: str) -> KernelSource:
    """Return the candidate whose kernel ends in `body`."""
    return KernelSource(
        language=language, device_code=_SHELLS[language].replace("BODY", body), plan=_PLAN
    )
