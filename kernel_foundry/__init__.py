"""Kernel Foundry: finds the fastest correct kernel for a PyTorch operator, on GPUs and CPUs.

The names here are those of the Python SDK that most programs need, with the errors that they may
meet; each is loaded when it is first used.
"""

import importlib
import os
from typing import Any

_MODULES = {
    "AlreadyExistsError": "errors",
    "BackendUnavailableError": "errors",
    "Budget": "sdk.loop.budget",
    "EliteNotFoundError": "errors",
    "EvaluationView": "sdk.notebook.evaluation_view",
    "Event": "sdk.loop.progress",
    "Foundry": "sdk.client",
    "FoundryClosedError": "errors",
    "InvalidArgumentError": "errors",
    "IsolationUnavailableError": "errors",
    "KernelFoundryError": "errors",
    "LlmConfigurationError": "errors",
    "LlmQuotaError": "errors",
    "LlmUnavailableError": "errors",
    "QuotaExceededError": "errors",
    "RunHeldError": "errors",
    "RunNotFoundError": "errors",
    "ServiceUnavailableError": "errors",
    "StoreUnavailableError": "errors",
    "Targets": "sdk.services",
    "TaskBeyondModelsError": "errors",
    "TaskInvalidError": "errors",
    "TaskRefusedError": "errors",
    "VerdictEvent": "sdk.loop.progress",
    "connect": "sdk.client",
}
"""Where each name is; `__init__.pyi` has the same for type checkers."""

__all__ = list(_MODULES)

# gRPC's own library writes lines on standard error that users cannot use (add_port.cc, where a port
# is in use); our errors say what matters. It reads this when it is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def __getattr__(name: str) -> Any:
    """Return a name of the SDK."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the names of the SDK, beside what the module has."""
    return sorted({*globals(), *__all__})
