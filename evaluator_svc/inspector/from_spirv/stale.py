"""Memory that a SPIR-V kernel reads before it is written, and constants that it writes.

Knows what reads and writes memory, and not what is refused.
"""

from typing import Final

from evaluator_svc.inspector.from_spirv.flow import control_flow
from evaluator_svc.inspector.stale_reads import Accesses, reads_stale
from evaluator_svc.spirv import Function, Instruction, Module
from evaluator_svc.spirv.opcodes import ATOMICS, Op, StorageClass

_SPACES: Final = {StorageClass.WORKGROUP: "local"}
"""A work-item's own variables are not among them: arguments look like them."""
_ATOMIC_STORE: Final = 228
_WRITES: Final = frozenset(
    {
        *(Op.STORE, Op.COPY_MEMORY, Op.COPY_MEMORY_SIZED, Op.GROUP_ASYNC_COPY, Op.FUNCTION_CALL),
        *(4458, 5576, 6121),  # matrices and blocks of a sub-group
        *ATOMICS,
    }
)


class MemoryUse:
    """What the kernels of a module do with memory of their own.

    Args:
        module: Where they are.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._types = {v.id: v.type_id for v in module.globals}
        for function in module.functions.values():
            for instruction in (*function.parameters, *function.body):
                if instruction.result_id:
                    self._types[instruction.result_id] = instruction.type_id

    def stale_spaces(self) -> tuple[str, ...]:
        """Return the kinds of memory that some kernel reads before anything is written there."""
        return tuple(
            name
            for storage, name in _SPACES.items()
            if any(self._is_stale(self._body(k), storage) for k in self._module.kernels())
        )

    def _body(self, kernel: Function) -> Function:
        """Return what a kernel does: the compiler leaves an entry point around a large one."""
        calls = [i for i in kernel.body if i.opcode == Op.FUNCTION_CALL and i.operands]
        called = [self._module.functions.get(i.operands[0]) for i in calls]
        own = [function for function in called if function is not None and function.body]
        return own[0] if len(own) == 1 and len(control_flow(kernel).blocks) == 1 else kernel

    def _is_stale(self, kernel: Function, storage: StorageClass) -> bool:
        if not any(self._reads(instruction, storage) for instruction in kernel.body):
            return False
        flow = control_flow(kernel)
        accesses = {
            block: Accesses(
                reads=[i for i, found in enumerate(body) if self._reads(found, storage)],
                writes=[i for i, found in enumerate(body) if self._writes(found, storage)],
            )
            for block, body in flow.blocks.items()
        }
        used = {block: found for block, found in accesses.items() if found.reads or found.writes}
        return reads_stale(used, flow.successors)

    def _reads(self, instruction: Instruction, storage: StorageClass) -> bool:
        is_read = instruction.opcode == Op.LOAD or (
            instruction.opcode in ATOMICS and instruction.opcode != _ATOMIC_STORE
        )
        return is_read and self._storage(instruction) == storage

    def _writes(self, instruction: Instruction, storage: StorageClass) -> bool:
        if instruction.opcode not in _WRITES:
            return False
        return self._storage(instruction) in (storage, StorageClass.GENERIC, None)

    def _storage(self, instruction: Instruction) -> int | None:
        """Return where the first operand points; None when it is no pointer that is known."""
        if instruction.opcode == Op.FUNCTION_CALL or not instruction.operands:
            return None
        # The two of an asynchronous copy stand behind its scope.
        position = 1 if instruction.opcode == Op.GROUP_ASYNC_COPY else 0
        type_id = self._types.get(instruction.operands[position], 0)
        pointer = self._module.pointer(type_id)
        return None if pointer is None else pointer.storage
