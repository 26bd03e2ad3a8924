"""A profile in words: what it tells, that it is bounded, and that nothing in it obeys anybody."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kernel_foundry.domain.finding import Figure
from kernel_foundry.domain.profile import HotLine, KernelProfile, Profile, Share, numbers_of
from kernel_foundry.domain.profile_digest import (
    LONGEST_DIGEST_LINE,
    MOST_DIGEST_LINES,
    digest_lines,
)

PRODUCT = KernelProfile(
    kernel="product",
    time_ns=1.2e6,
    units=(Share(name="DRAM", share=0.31), Share(name="tensor pipe", share=0.62)),
    stalls=(Share(name="long_scoreboard", share=0.55), Share(name="wait", share=0.004)),
    occupancy=0.48,
    possible_occupancy=0.5,
    occupancy_limit="registers",
    registers=128,
    shared_bytes=66_048,
    moved_bytes=3e7,
)
LIBRARY = KernelProfile(
    kernel="at::elementwise", time_ns=4e5, launches=2, is_library=True, moved_bytes=1e7
)
PROFILE = Profile(
    workload="default",
    call_ns=1.7e6,
    minimal_bytes=20_000_000,
    tool="ncu",
    kernels=(PRODUCT, LIBRARY),
    lines=(
        HotLine(line=2, share=0.6, stall="long_scoreboard"),
        HotLine(line=7, share=0.2, file="tile.cuh"),
        HotLine(line=1, share=0.001),
    ),
)


def test_it_tells_bytes_units_stalls_occupancy_and_lines() -> None:
    assert digest_lines(PROFILE, "one\n  a = `b[i]`;\n") == (
        "default, 1.7 ms a call, by ncu; compulsory bytes: 20 MB; moved: 50 MB (2.5x)",
        "product: 1.2 ms (75 %); busy: DRAM 31 %, tensor pipe 62 %",
        "  warps wait for: long_scoreboard 55 %",
        "  occupancy 48 % reached; 50 % possible, limited by registers; 128 registers; "
        "66 kB shared memory",
        "at::elementwise (library): 400 µs in 2 launches (25 %)",
        "line 2: 60 % of the samples, mostly long_scoreboard: `a = 'b[i]';`",
        "tile.cuh:7: 20 % of the samples",
    )


def test_without_counters_it_tells_why_and_what_the_object_shows() -> None:
    kernel = KernelProfile(
        kernel="k",
        time_ns=5e3,
        possible_occupancy=1.0,
        registers=24,
        instructions=(Share(name="global memory", share=0.25),),
    )
    profile = replace(PROFILE, tool="", reason="ncu was not used", kernels=(kernel,), lines=())
    head, *others = digest_lines(profile)

    assert "by ncu" not in head
    assert others == [
        "no hardware counters: ncu was not used",
        "k: 5 µs; instructions: global memory 25 %",
        "  occupancy 100 % possible; 24 registers",
    ]


def test_a_processors_counters_are_told_by_call() -> None:
    counters = (
        Figure(name="cycles", value=2e6),
        Figure(name="instructions", value=3e6),
        Figure(name="llc_misses", value=1e4),
    )
    lines = digest_lines(replace(PROFILE, tool="perf_event", counters=counters))

    assert lines[1] == (
        "in a call with warm caches: cycles 2e+06, instructions 3e+06, llc_misses 1e+04, "
        "1.50 instructions a cycle, 640 kB by misses of the last cache"
    )


@given(st.from_type(Profile), st.text(max_size=300))
def test_any_profile_is_bounded_and_printable(profile: Profile, code: str) -> None:
    lines = digest_lines(profile, code)

    assert 1 <= len(lines) <= MOST_DIGEST_LINES
    assert all(len(line) <= LONGEST_DIGEST_LINE and line.isprintable() for line in lines)


def test_a_full_profile_keeps_to_25_lines() -> None:
    kernels = tuple(replace(PRODUCT, kernel=f"k{i}\x1b[31m") for i in range(64))
    lines = tuple(HotLine(line=i, share=0.5) for i in range(64))
    told = digest_lines(replace(PROFILE, kernels=kernels, lines=lines, reason="\n" * 4000))

    assert len(told) == MOST_DIGEST_LINES
    assert "\x1b" not in "".join(told)


def test_every_number_is_among_those_that_limits_are_held_against() -> None:
    numbers = numbers_of(replace(PROFILE, counters=(Figure(name="cycles", value=-3.0),)))

    assert {1.7e6, 2e7, 1.2e6, 0.31, 0.55, 128.0, 0.001, 7.0, -3.0} <= set(numbers)
