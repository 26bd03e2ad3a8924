"""The numbers of the SPIR-V 1.6 specification that are looked at, by their names there.

An opcode that is absent here is parsed as plain operands.
"""

from enum import IntEnum
from typing import Final


class Op(IntEnum):
    """Instruction opcodes."""

    NAME = 5
    EXTENSION = 10
    EXT_INST = 12
    ENTRY_POINT = 15
    CAPABILITY = 17
    TYPE_INT = 21
    TYPE_FLOAT = 22
    TYPE_VECTOR = 23
    TYPE_ARRAY = 28
    TYPE_STRUCT = 30
    TYPE_POINTER = 32
    CONSTANT = 43
    CONSTANT_NULL = 46
    FUNCTION = 54
    FUNCTION_PARAMETER = 55
    FUNCTION_END = 56
    FUNCTION_CALL = 57
    VARIABLE = 59
    LOAD = 61
    STORE = 62
    COPY_MEMORY = 63
    COPY_MEMORY_SIZED = 64
    ACCESS_CHAIN = 65
    IN_BOUNDS_ACCESS_CHAIN = 66
    PTR_ACCESS_CHAIN = 67
    IN_BOUNDS_PTR_ACCESS_CHAIN = 70
    DECORATE = 71
    COMPOSITE_CONSTRUCT = 80
    COMPOSITE_EXTRACT = 81
    COPY_OBJECT = 83
    U_CONVERT = 113
    S_CONVERT = 114
    F_CONVERT = 115
    CONVERT_PTR_TO_U = 117
    CONVERT_U_TO_PTR = 120
    PTR_CAST_TO_GENERIC = 121
    GENERIC_CAST_TO_PTR = 122
    GENERIC_CAST_TO_PTR_EXPLICIT = 123
    BITCAST = 124
    S_NEGATE = 126
    I_ADD = 128
    F_ADD = 129
    I_SUB = 130
    F_SUB = 131
    I_MUL = 132
    F_MUL = 133
    U_DIV = 134
    S_DIV = 135
    F_DIV = 136
    VECTOR_TIMES_SCALAR = 142
    U_MOD = 137
    S_REM = 138
    S_MOD = 139
    SELECT = 169
    SHIFT_RIGHT_LOGICAL = 194
    SHIFT_RIGHT_ARITHMETIC = 195
    SHIFT_LEFT_LOGICAL = 196
    BITWISE_OR = 197
    BITWISE_AND = 199
    CONTROL_BARRIER = 224
    MEMORY_BARRIER = 225
    PHI = 245
    LABEL = 248
    BRANCH = 249
    BRANCH_CONDITIONAL = 250
    SWITCH = 251
    RETURN = 253
    GROUP_ASYNC_COPY = 259
    GROUP_WAIT_EVENTS = 260
    ENQUEUE_MARKER = 291
    ENQUEUE_KERNEL = 292
    READ_CLOCK_KHR = 5056
    CONSTANT_FUNCTION_POINTER_INTEL = 5600
    FUNCTION_POINTER_CALL_INTEL = 5601
    ASM_TARGET_INTEL = 5609
    ASM_INTEL = 5610
    ASM_CALL_INTEL = 5611
    CONVERT_F_TO_BF16_INTEL = 6116
    ROUND_F_TO_TF32_INTEL = 6426


class StorageClass(IntEnum):
    """Where a pointer points."""

    INPUT = 1
    WORKGROUP = 4
    CROSS_WORKGROUP = 5
    FUNCTION = 7
    GENERIC = 8


class BuiltIn(IntEnum):
    """Work-item queries that come as input variables."""

    NUM_WORKGROUPS = 24
    WORKGROUP_ID = 26
    LOCAL_INVOCATION_ID = 27
    GLOBAL_INVOCATION_ID = 28
    LOCAL_INVOCATION_INDEX = 29
    GLOBAL_SIZE = 31
    GLOBAL_LINEAR_ID = 34
    SUBGROUP_LOCAL_INVOCATION_ID = 41


DECORATION_BUILT_IN: Final = 11
DECORATION_CONSTANT: Final = 22
DECORATION_LINKAGE_ATTRIBUTES: Final = 41
LINKAGE_IMPORT: Final = 1

ATOMICS: Final = frozenset({*range(227, 243), 5614, 5615, 6035})
"""Atomic loads, stores and changes; the pointer is the first operand."""
GROUP_REDUCTIONS: Final = frozenset({*range(264, 272), *range(349, 365), *range(6401, 6409)})
"""Reductions and scans over a group; the scope is the first operand."""
GROUP_EXCHANGES: Final = frozenset({*range(261, 264), *range(333, 349), 365, 366})
"""Votes, broadcasts and shuffles; the scope is the first operand."""
SUBGROUP_EXCHANGES: Final = frozenset(range(5571, 5577))
"""Shuffles and block accesses of Intel's sub-group extension."""
MATRIX_PRODUCTS: Final = frozenset({4459, 6122, 6237})
"""Products on matrix units."""

OPENCL_EXP: Final = frozenset({19, 20, 21, 69, 70, 71, 83, 84, 85})
"""Exponential functions among OpenCL's extended instructions."""
OPENCL_FMA: Final = frozenset({26, 42})
OPENCL_PREFETCH: Final = 182
OPENCL_PRINTF: Final = 184

RESULT_ONLY: Final = frozenset(
    {7, 11, *range(19, 39), 73, 248, 322, 327, 4456, 4472, 5358, 5609, 6086, 6119}
)
"""Opcodes with a result id and no result type: types, labels, strings, decoration groups."""

NO_RESULT: Final = frozenset(
    {
        *(0, 2, 3, 4, 5, 6, 8, 10, 14, 15, 16, 17, 39, 56, 62, 63, 64, 71, 72, 74, 75, 99),
        *(218, 219, 220, 221, 224, 225, 228, 246, 247, *range(249, 258), 260, 287, 288),
        *(297, 298, 302, 303, 317, 319, 329, 330, 331, 332, 4416, 4458),
        *(5576, 5578, 5581, 5630, 5632, 5633, 6090, 6121, 6142, 6143),
    }
)
"""Opcodes with neither result type nor result id."""
