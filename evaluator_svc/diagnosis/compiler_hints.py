"""Hints for the messages of compilers; for what bounds a kernel they are in `bound_hints.py`."""

import re
from typing import Final

_HINTS: Final = (
    (
        re.compile(r"use of undeclared identifier '[A-Z][A-Z0-9_]+'"),
        "a constant of the plan must stand in TUNE or CONST to be a macro here",
    ),
    (
        re.compile(r"use of undeclared identifier|no member named .* in namespace"),
        "check the spelling and the namespace: sycl::, syclext:: (ext::oneapi), syclexp:: (its "
        "experimental part)",
    ),
    (
        re.compile(
            r"no matching function for call to '(?:reduce|inclusive_scan|exclusive_scan)_over"
        ),
        "group functions take the group first and a typed operation last: "
        "reduce_over_group(sg, x, sycl::plus<float>())",
    ),
    (
        re.compile(r"no matching (?:member )?function"),
        "compare number and types of the arguments with what the function takes",
    ),
    (re.compile(r"ambiguous"), "make both operands the same type: 1.0f, not 1 or 1.0"),
    (
        re.compile(r"static assertion failed|static_assert"),
        "this configuration is not meant: exclude it with WHERE",
    ),
    (
        re.compile(r"SYCL kernel cannot use rtti"),
        "write device code alone: no queue, handler, buffer or accessor, which are the host's",
    ),
    (
        re.compile(r"function pointer"),
        "call functions by name, or pass a lambda to a template",
    ),
    (
        re.compile(r"cannot call .* recursive|recursive function"),
        "unroll the recursion into a loop",
    ),
    (
        re.compile(r"recursive template instantiation|template instantiation depth"),
        "end the recursion of the template, or use a loop in a constexpr function",
    ),
    (
        re.compile(r"zero-length array|variable length array|variable-length"),
        "array sizes must be compile-time constants: TUNE or CONST in the plan",
    ),
    (
        re.compile(r"no kernel called|undefined kernel|no kernel to build"),
        'a kernel is an extern "C" void function, in SYCL with '
        "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<N>)), in CUDA __global__",
    ),
    (
        re.compile(r"expected ';'|expected '\)'|expected expression|expected unqualified-id"),
        "the line or the one before it is not complete",
    ),
    (
        re.compile(r'identifier "[A-Z][A-Z0-9_]+" is undefined'),
        "a constant of the plan must stand in TUNE or CONST to be a macro here",
    ),
    (
        re.compile(r"cannot open source file"),
        "this header is not there; device code needs cuda/std/…, cub/block/…, cub/warp/…, "
        "cuda_fp16.h, mma.h or cooperative_groups.h at most",
    ),
    (
        re.compile(r'namespace "std" has no member|incomplete type "std::|identifier "std'),
        "include its header, such as <utility>, <algorithm> or <cmath>; containers and streams are "
        "not there",
    ),
    (
        re.compile(r'incomplete type "nvcuda::wmma::fragment'),
        "matrix units take 16x16x16, 32x8x16 and 8x32x16 of half or __nv_bfloat16, and 16x16x8 of "
        "wmma::precision::tf32",
    ),
    (
        re.compile(r'identifier "\w+" is undefined'),
        "check the spelling; only CUDA's device functions are there",
    ),
    (
        re.compile(r"no instance of (?:overloaded )?function|too (?:few|many) arguments"),
        "compare number and types of the arguments with what the function takes",
    ),
    (
        re.compile(r"no suitable (?:constructor|user-defined conversion|conversion function)"),
        "convert it yourself: __float2half(x), __half2float(x), static_cast<float>(x)",
    ),
    (
        re.compile(r"must have (?:class|pointer-to-class) type"),
        "a pointer is indexed, p[i]; only vector types such as float4 have members x, y, z, w",
    ),
    (
        re.compile(r"more than one instance of overloaded function"),
        "make the arguments exactly the types of one of them",
    ),
    (
        re.compile(r"must have a constant value|is not a constant expression"),
        "array sizes and template arguments must be compile-time constants: TUNE or CONST in the "
        "plan",
    ),
    (
        re.compile(r"too much shared data"),
        "make the tiles smaller, or the memory dynamic: extern __shared__ in the kernel, and its "
        "bytes as the third item of the launch, kernel[grid, block, bytes](...)",
    ),
    (
        re.compile(r"Unresolved extern function"),
        "define the function in the source; there are no host functions",
    ),
    (
        re.compile(r"Unknown modifier|Not a name of any known instruction|requires \.target"),
        "the inline assembly is not PTX for this device",
    ),
    (
        re.compile(r'expected an? (?:"[^"]+"|expression|declaration|identifier|statement)'),
        "the line or the one before it is not complete",
    ),
)
"""The first that fits is given."""


def hint_for(text: str) -> str:
    """Return a hint; empty if there is none."""
    return next((hint for pattern, hint in _HINTS if pattern.search(text)), "")
