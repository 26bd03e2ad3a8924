"""Reads what compilers made of a candidate, once: one object code in, one `ObjectReport` out.

The bytes come from a compiler that was fed hostile text. Every rule of the policy is held against
them, and it is found what they compute in, what kernels do with memory and with each other, and
what they take. The analyses of a language stand in `from_ptx` and `from_spirv`, what they share
beside them; `work` is what the process answers.
"""

from evaluator_svc.inspector.inspect import inspect_cubin, inspect_ptx, inspect_spirv

__all__ = ["inspect_cubin", "inspect_ptx", "inspect_spirv"]
