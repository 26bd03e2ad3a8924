"""KernelBench's module: kernels, and never the reference in their place."""

from typing import Any

from kernel_foundry.sdk.export.runtime.module import Module, kernel_result


class ModelNew(Module):
    """The reference's module with its constructor; a call without kernels raises an error."""

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """Compute what the reference computes.

        Raises:
            NoKernelError: no kernel was judged for such a call, and why.
        """
        return kernel_result(self, arguments, named, is_strict=True)

    _kf_forward = forward
