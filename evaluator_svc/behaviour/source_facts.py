"""Facts from comment-free source, for languages whose object code is not SPIR-V.

Counts calls of the language's own functions and its own keywords; a name that merely contains
such a word, a string or a comment counts for nothing. Addresses cannot be followed here: an access
is taken for contiguous when the kernel indexes by `threadIdx.x` without a factor.
"""

import re
from typing import Final

from evaluator_svc.behaviour.facts import KernelFacts
from evaluator_svc.spirv.opcodes import Scope
from kernel_foundry.plan.source_text import blank_directives, strip_comments_and_literals

_CALL: Final = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^<>;(){}]*>)?\s*\(")
_WORD: Final = re.compile(r"\b[A-Za-z_]\w*\b")
_SCALED_INDEX: Final = re.compile(r"\bthreadIdx\.x\s*\)?\s*\*(?!=)")
_LOOP: Final = re.compile(r"\b(?:for|while)\s*\(")

_WARP: Final = re.compile(r"__(?:shfl|reduce|ballot|any|all|match)\w*_sync|__syncwarp")
_ATOMIC: Final = re.compile(r"atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)(?:_system)?")
_VECTOR_TYPES: Final = frozenset({"float2", "float4", "double2", "int2", "int4", "half2", "uint4"})


def source_facts(device_code: str) -> KernelFacts:
    """Return what can be told from CUDA source alone."""
    text = blank_directives(strip_comments_and_literals(device_code))
    words = set(_WORD.findall(text))
    calls = set(_CALL.findall(text))
    has_warp = any(_WARP.fullmatch(c) for c in calls)
    shares = "__shared__" in words and "__syncthreads" in calls
    moves_ahead = not calls.isdisjoint({"__pipeline_memcpy_async", "memcpy_async"})
    has_threads = "threadIdx" in words
    is_strided = _SCALED_INDEX.search(text) is not None
    return KernelFacts(
        contiguous_weight=float(has_threads and not is_strided),
        strided_weight=float(is_strided),
        uniform_weight=float(not has_threads),
        vector_weight=float(not words.isdisjoint(_VECTOR_TYPES)),
        pass_count=max(1, len(_LOOP.findall(text))),
        stages_local=shares,
        shares_local=shares,
        moves_ahead=moves_ahead,
        has_matrix_product=not calls.isdisjoint({"mma_sync"}),
        reduces_in_group=has_warp,
        group_scopes=frozenset({Scope.SUBGROUP} if has_warp else ()),
        barrier_scopes=frozenset({Scope.WORKGROUP} if "__syncthreads" in calls else ()),
        has_global_atomics=any(_ATOMIC.fullmatch(c) for c in calls),
    )
