"""Rules that PTX and SPIR-V share; rules of only one of them are in its `rules.py`."""

from collections.abc import Container, Iterable, Iterator

from evaluator_svc.policy.finding import rule_finding, short
from evaluator_svc.policy.limits import MAX_CONSTANT_BYTES
from kernel_foundry.domain.finding import Finding


def missing_kernels(present: Container[str], kernels: Iterable[str]) -> Iterator[Finding]:
    """Iterate over the kernels that the plan launches and the object code does not have."""
    for kernel in kernels:
        if kernel not in present:
            message = f"the object code has no kernel called {short(kernel)}"
            yield rule_finding("object.missing_kernel", message)


def constant_tables(size_bytes: int) -> Iterator[Finding]:
    """Report constant data that is as large as a table of results: a suspicion."""
    if size_bytes >= MAX_CONSTANT_BYTES:
        message = f"{size_bytes} bytes of constant data"
        yield rule_finding("object.constant_table", message, "compute what can be computed")


def foreign_function(name: str, hint: str) -> Finding:
    """Refuse the call of a function that neither the source nor the compiler defines."""
    message = f"{short(name)} is not part of the kernel's own code"
    return rule_finding("object.import", message, hint)


def lasting_variable(name: str, hint: str, line: int | None = None) -> Finding:
    """Refuse a global variable that kernels write, or may write."""
    message = f"the global variable {short(name)} would keep state between calls"
    return rule_finding("object.global_state", message, hint, line)


def absolute_address(message: str, line: int | None = None) -> Finding:
    """Refuse an access to a place that the plan has not passed."""
    hint = "memory comes from the plan: pass a tensor or empty(shape, dtype)"
    return rule_finding("object.absolute_address", message, hint, line)
