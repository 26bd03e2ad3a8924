"""Hints: every step of every language has its own advice, in that language's constructs."""

import itertools
import re

import pytest

from archive_svc.grids.result import Cell
from archive_svc.search.directions.hint import hint
from archive_svc.search.directions.steps import MeasureStep, step
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import DIMENSIONS, LEVELS

MOST_STEP_CHARS = 600
MOST_HINT_CHARS = 2000

KEYS = [
    (language, dimension, level, up)
    for language in Language
    for dimension in DIMENSIONS
    for up in (True, False)
    for level in (range(LEVELS - 1) if up else range(1, LEVELS))
]
_LEVELS = range(LEVELS)
CELLS: list[Cell] = list(itertools.product(_LEVELS, _LEVELS, _LEVELS))

_OF_CUDA = re.compile(r"__\w+|\bthread|\bwarp|\bblock(?:s|Idx)?\b|float4|shared|multiprocessor")
_OF_SYCL = re.compile(r"\bsycl|local_accessor|work-(?:group|item)|sub-group|\blocal\(", re.I)


def _step(key: tuple[Language, str, int, bool]) -> MeasureStep:
    language, dimension, level, up = key
    return step(language, dimension, level, up=up)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_every_step_says_what_when_and_beware(key: tuple[Language, str, int, bool]) -> None:
    found = _step(key)
    for text in (found.do, found.pays, found.pitfall):
        assert text == " ".join(text.split())
        assert text[0].isupper() or text[0] == "`"
        assert text.endswith(".")
    assert len(found.text) <= MOST_STEP_CHARS


def test_no_two_steps_say_the_same() -> None:
    for language in Language:
        texts = [_step(key).do for key in KEYS if key[0] is language]
        assert len(set(texts)) == len(texts) == 2 * 3 * (LEVELS - 1)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_languages_do_not_leak(key: tuple[Language, str, int, bool]) -> None:
    text = _step(key).text
    foreign = _OF_CUDA if key[0] is Language.SYCL else _OF_SYCL
    assert foreign.search(text) is None


@pytest.mark.parametrize("language", Language)
def test_there_is_no_step_off_the_grid(language: Language) -> None:
    with pytest.raises(KeyError):
        step(language, "memory", LEVELS - 1, up=True)
    with pytest.raises(KeyError):
        step(language, "memory", 0, up=False)


@pytest.mark.parametrize(
    ("language", "cell", "target", "constructs"),
    [
        (Language.CUDA, (0, 0, 0), (1, 0, 0), ("threadIdx.x", "float4")),
        (Language.CUDA, (1, 0, 0), (2, 0, 0), ("__shared__", "kernel[grid, block, shared_bytes]")),
        (Language.CUDA, (2, 0, 0), (3, 0, 0), ("cuda/pipeline",)),
        (Language.CUDA, (0, 0, 0), (0, 0, 1), ("__syncthreads()",)),
        (Language.CUDA, (0, 0, 1), (0, 0, 2), ("__shfl_xor_sync",)),
        (Language.CUDA, (0, 0, 2), (0, 0, 3), ("atomicAdd", "zeros(...)", '"cooperative"')),
        (Language.SYCL, (1, 0, 0), (2, 0, 0), ("sycl::local_accessor", "local(n, float32)")),
        (Language.SYCL, (2, 0, 0), (3, 0, 0), ("4 x 4", "#pragma unroll")),
        (Language.SYCL, (0, 1, 0), (0, 2, 0), ("sycl::reduce_over_group", "online")),
        (Language.SYCL, (0, 0, 0), (0, 0, 1), ("sycl::group_barrier",)),
        (Language.SYCL, (0, 0, 1), (0, 0, 2), ("get_sub_group()", "sub_group_size<SG>")),
        (Language.SYCL, (0, 0, 2), (0, 0, 3), ("sycl::atomic_ref", "zeros(...)")),
        (Language.SYCL, (2, 0, 0), (1, 0, 0), ("Drop the tile", "sycl::local_accessor")),
    ],
)
def test_a_step_names_its_constructs(
    language: Language, cell: Cell, target: Cell, constructs: tuple[str, ...]
) -> None:
    text = hint(language, cell, target)
    for construct in constructs:
        assert construct in text


@pytest.mark.parametrize("language", Language)
def test_every_move_has_a_hint_of_bounded_length(language: Language) -> None:
    for cell, target in itertools.product(CELLS, CELLS):
        text = hint(language, cell, target)
        assert bool(text) == (cell != target)
        assert len(text) <= MOST_HINT_CHARS


def test_the_largest_component_comes_first_and_in_full() -> None:
    largest = step(Language.CUDA, "synchronization", 2, up=True)
    smaller = step(Language.CUDA, "memory", 0, up=True)
    text = hint(Language.CUDA, (0, 1, 1), (1, 1, 3))
    assert text == f"{largest.text} Also: {smaller.do}"


def test_a_way_up_is_its_last_step_and_a_way_down_is_every_step() -> None:
    ups = [step(Language.SYCL, "algorithm", level, up=True) for level in range(3)]
    assert hint(Language.SYCL, (0, 0, 0), (0, 3, 0)) == ups[2].text
    downs = [step(Language.SYCL, "algorithm", level, up=False) for level in (3, 2)]
    assert hint(Language.SYCL, (0, 3, 0), (0, 1, 0)) == f"{downs[0].text} Also: {downs[1].do}"
