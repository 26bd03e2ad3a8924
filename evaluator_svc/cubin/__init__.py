"""Cubins, NVIDIA's object code: what each kernel takes. The bytes may be hostile."""

from evaluator_svc.cubin.elf import CubinError
from evaluator_svc.cubin.resources import resources

__all__ = ["CubinError", "resources"]
