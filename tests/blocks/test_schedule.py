"""How tiles and their steps are dealt out to blocks: all of them, once, and evenly; on the host."""

from collections import Counter
from dataclasses import dataclass

import pytest
import torch

from evaluator_svc.judge.describe import describe_task
from kernel_foundry.domain.task import Task
from kernel_foundry.plan import parse
from kernel_foundry.plan.from_admission import device_limits, name_table
from tests.cuda_on_host.host_run import COMPILER, bind, run_on_host
from tests.domain_values import H200

MOST_SHARES = 40
CASES = (  # tiles, steps of k, blocks
    (16, 256, 132),  # a few tiles of long sums
    (16, 32, 128),  # eight blocks a tile
    (33, 7, 8),  # whole tiles behind the shared ones
    (24, 5, 8),  # tiles divide among blocks
    (1, 3, 8),  # fewer steps than blocks
    (5, 3, 4),
    (9, 1, 7),
)
SIZES = ((1000, 300, 2), (64, 64, 1), (2100, 65, 3))

REFERENCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.zeros({rows}, 4, dtype=torch.int32)]

def get_init_inputs():
    return []
"""
DEVICE_CODE = """
#include <kf/schedule.hpp>
extern "C" __global__ void deal(int* out, int first, int most, int tiles, int steps) {
  int* to = out + (first + blockIdx.x * most) * 4;
  const kf::StreamKShares shares(tiles, steps, gridDim.x);
  shares.for_each([&](const kf::Share& share) {
    to[0] = share.tile, to[1] = share.first, to[2] = share.last, to[3] = share.part;
    to += 4;
  });
}
extern "C" __global__ void find(int* out, int first, int tiles, int steps, int blocks) {
  const kf::StreamKShares shares(tiles, steps, blocks);
  for (int tile = 0; tile < shares.shared; ++tile) {
    const kf::StreamKShares::Parts parts = shares.parts_of(tile);
    int* const to = out + (first + tile) * 4;
    to[0] = parts.first, to[1] = parts.block, to[2] = parts.last;
  }
}
extern "C" __global__ void order(int* out, int first, int m, int n, int batches) {
  const kf::TileOrder<128, 64> order(m, n, batches);
  for (int i = 0; i < order.count; ++i) {
    const kf::Tile tile = order.at(i);
    int* const to = out + (first + i) * 4;
    to[0] = tile.row, to[1] = tile.column, to[2] = tile.batch;
  }
}
"""


@dataclass(frozen=True, slots=True)
class Share:
    """What a block was given, as `kf::Share` has it."""

    tile: int
    first: int
    last: int
    part: int


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> torch.Tensor:
    """All cases' records, one behind the other."""
    if COMPILER is None:
        pytest.skip("no g++ to run device code on the host")
    lines, rows = [], 0
    for tiles, steps, blocks in CASES:
        lines.append(f"deal[{blocks}, 1](out, {rows}, {MOST_SHARES}, {tiles}, {steps})")
        rows += blocks * MOST_SHARES
        lines.append(f"find[1, 1](out, {rows}, {tiles}, {steps}, {blocks})")
        rows += tiles
    for m, n, batches in SIZES:
        lines.append(f"order[1, 1](out, {rows}, {m}, {n}, {batches})")
        rows += _count(m, n, batches)
    task = Task(name="shares", reference=REFERENCE.format(rows=rows))
    (workload,) = describe_task(task).workloads
    plan = "\n    ".join(["def launch(x, out):", *lines]) + "\n"
    candidate = bind(
        DEVICE_CODE,
        parse(plan),
        names=name_table(workload.tensors, workload.scalars),
        configuration={},
        device=device_limits(H200),
    )
    return run_on_host(candidate, tmp_path_factory.mktemp("shares"))["out"]


def _count(m: int, n: int, batches: int) -> int:
    return -(-m // 128) * -(-n // 64) * batches


def _first_row(case: int) -> int:
    return sum(blocks * MOST_SHARES + tiles for tiles, _, blocks in CASES[:case])


def _shares(found: torch.Tensor, case: int) -> list[list[Share]]:
    blocks = CASES[case][2]
    first = _first_row(case)
    rows = found[first : first + blocks * MOST_SHARES].view(blocks, MOST_SHARES, 4).tolist()
    return [[Share(*row) for row in block if row[0] >= 0] for block in rows]


@pytest.mark.parametrize("case", range(len(CASES)), ids=[str(case) for case in CASES])
def test_stream_k_deals_out_each_step_once_and_evenly(found: torch.Tensor, case: int) -> None:
    tiles, steps, blocks = CASES[case]
    shares = _shares(found, case)

    dealt = Counter(
        (share.tile, step)
        for block in shares
        for share in block
        for step in range(share.first, share.last)
    )
    of_blocks = [sum(share.last - share.first for share in block) for block in shares]

    assert dealt == {(tile, step): 1 for tile in range(tiles) for step in range(steps)}
    assert max(of_blocks) - min(of_blocks) <= 1
    parts = [share.part for block in shares for share in block if share.part >= 0]
    assert len(set(parts)) == len(parts)
    assert all(part < 2 * blocks for part in parts)
    assert {s.last - s.first for block in shares for s in block if s.part < 0} <= {steps}


@pytest.mark.parametrize("case", range(len(CASES)), ids=[str(case) for case in CASES])
def test_the_parts_of_a_tile_are_found_in_order_of_k(found: torch.Tensor, case: int) -> None:
    tiles, _, blocks = CASES[case]
    given = [share for block in _shares(found, case) for share in block if share.part >= 0]
    first = _first_row(case) + blocks * MOST_SHARES

    for tile in range(tiles):
        part, block, last = found[first + tile, :3].tolist()
        looked_up = [part, *(2 * other for other in range(block + 1, last + 1))]
        of_tile = sorted((s for s in given if s.tile == tile), key=lambda share: share.first)
        assert [share.part for share in of_tile] == (looked_up if block < last else [])


def test_tiles_are_in_strips_and_none_is_left_out(found: torch.Tensor) -> None:
    first = _first_row(len(CASES))
    for m, n, batches in SIZES:
        count = _count(m, n, batches)
        tiles = [tuple(row) for row in found[first : first + count, :3].tolist()]
        first += count
        assert sorted(tiles) == [
            (row, column, batch)
            for row in range(0, m, 128)
            for column in range(0, n, 64)
            for batch in range(batches)
        ]
        assert {row for row, _, _ in tiles[: min(8, -(-m // 128))]} == set(
            range(0, min(m, 8 * 128), 128)
        )
