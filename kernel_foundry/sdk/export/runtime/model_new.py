"""KernelBench's module: kernels, and never the reference in their place."""

from typing import Any

from kernel_foundry.sdk.export.runtime.call import bound_call
from kernel_foundry.sdk.export.runtime.module import (
    Module,
    call_of,
    contained,
    is_plain,
    kind_of,
    operator,
    run_kernels,
)
from kernel_foundry.sdk.export.runtime.task import OUTPUTS


class ModelNew(Module):
    """The reference's module with its constructor; a call without kernels raises an error."""

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """Compute what the reference computes.

        Raises:
            NoKernelError: no kernel was judged for such a call, and why.
        """
        kind, tensors = call_of(self, arguments, named)
        if is_plain(tensors):
            results = run_kernels(kind_of(kind), tensors)
        else:
            bound_call(kind_of(kind), tensors)
            result = operator(*tensors, kind)
            results = [result] if len(OUTPUTS) == 1 else result
        return results[0] if len(OUTPUTS) == 1 else contained(kind, results)
