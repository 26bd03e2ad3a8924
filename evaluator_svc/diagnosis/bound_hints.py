"""Hints against the limit that sets a kernel's time, without those that it follows already."""

from collections.abc import Iterator
from typing import Final

from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.languages import backend_of
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.launch_facts import LaunchFacts

_VECTOR_SHARE: Final = 0.5
"""Share of the contiguous accesses above which a kernel is vectorised by hand."""


def is_vectorised(kernels: KernelFacts | None) -> bool:
    """Return whether most accesses move several numbers at once."""
    if kernels is None or not kernels.vector_weight:
        return False
    plain = kernels.contiguous_weight + kernels.strided_weight
    return kernels.vector_weight >= _VECTOR_SHARE * plain


def bound_hint(
    kind: FindingKind,
    language: Language,
    kernels: KernelFacts | None,
    launches: LaunchFacts | None,
) -> str:
    """Return the hints; empty if the kernels follow all of them already.

    Args:
        kind: The limit.
        language: Of the kernels.
        kernels: What they do; None: not known.
        launches: What the plan launches; None: not known.
    """
    facts = kernels or KernelFacts()
    has_warps = backend_of(language).has_warps
    is_single = launches is not None and launches.launch_count == 1
    if kind is FindingKind.LAUNCH_BOUND:
        return "; ".join(_fewer_launches(is_single=is_single, has_warps=has_warps))
    if kind is FindingKind.MEMORY_BOUND:
        has_one_pass = is_single and kernels is not None and facts.pass_count <= 1
        vectors = has_warps and not is_vectorised(kernels)
        hints = _less_traffic(has_one_pass=has_one_pass, has_warps=has_warps, vectors=vectors)
        return "; ".join(hints)
    if kind is FindingKind.COMPUTE_BOUND:
        return "; ".join(_less_arithmetic(facts, has_warps=has_warps))
    if has_warps:
        return "; ".join(_more_in_flight(facts))
    return "" if is_vectorised(kernels) else "; ".join(_fuller_vectors(facts))


def _fewer_launches(*, is_single: bool, has_warps: bool) -> Iterator[str]:
    if is_single:
        return  # nothing to fuse
    yield "do more in one launch: fuse the kernels"
    if has_warps:
        yield "or make them steps of one cooperative kernel with a grid barrier between"


def _less_traffic(*, has_one_pass: bool, has_warps: bool, vectors: bool) -> Iterator[str]:
    if not has_one_pass:
        where = "shared" if has_warps else "local"
        yield (
            f"touch each element once: keep a row in registers or {where} memory between passes, "
            "and fuse what reads it again"
        )
    if vectors:
        yield "load vectors of 16 bytes"


def _less_arithmetic(facts: KernelFacts, *, has_warps: bool) -> Iterator[str]:
    if not (facts.has_register_tile or facts.has_matrix_product):
        yield "use each load several times: register tiles"
    if has_warps and not facts.has_matrix_product:
        yield "matrix units, with split operands where one product is not exact enough"
    if not has_warps:
        yield "cheaper functions, such as a polynomial for erf"


def _more_in_flight(facts: KernelFacts) -> Iterator[str]:
    has_tiles = facts.has_register_tile or facts.has_matrix_product
    if has_tiles and not facts.moves_ahead:
        yield "the next tile on its way while this one is multiplied"
    elif not has_tiles:
        yield (
            "more loads in flight: several elements for each thread, independent accumulators, "
            "more warps"
        )


def _fuller_vectors(facts: KernelFacts) -> Iterator[str]:
    if facts.reduces_in_group:
        yield "one sub-group (16 or 32) a row, two to eight independent accumulators"
    yield (
        "a uniform loop counter with p[i + lane], an unmasked main loop and a masked tail, no "
        "sycl::min or max in an address (write ?:)"
    )
    if facts.barrier_scopes:
        yield "no work-group barriers"
