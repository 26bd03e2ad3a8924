"""Reads what compilers made of a candidate, once: one object code in, one `ObjectReport` out.

The bytes come from a compiler that was fed hostile text. The inspector checks them against every
rule of the policy, and finds out which number formats they use, what kernels do with memory and
with each other, and which resources they take. `from_ptx` and `from_spirv` analyse one form of
object code each; what they share lies beside them. `work` answers the process's requests.
"""

from evaluator_svc.inspector.inspect import inspect_cubin, inspect_ptx, inspect_spirv

__all__ = ["inspect_cubin", "inspect_ptx", "inspect_spirv"]
