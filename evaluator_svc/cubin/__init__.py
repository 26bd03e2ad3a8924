"""Cubins, NVIDIA's object code: what each kernel takes, and its machine code as text.

Knows nothing of devices; the bytes may be hostile.
"""

from evaluator_svc.cubin.disassemble import disassemble
from evaluator_svc.cubin.elf import CubinError
from evaluator_svc.cubin.resources import resources

__all__ = ["CubinError", "disassemble", "resources"]
