"""The GEMM space that sweeps are compared on: 210 configurations of a float32 product of 2048.

One kernel text for both tuners; the names are macros.
"""

SIZE = 2048
TUNE = {
    "BLOCK_X": [16, 32, 64],
    "BLOCK_Y": [1, 2, 4, 8, 16, 32],
    "TILE_X": [1, 2, 4, 8],
    "TILE_Y": [1, 2, 4, 8],
}
WHERE = ("64 <= BLOCK_X * BLOCK_Y <= 1024", "TILE_X * TILE_Y <= 32")
COUNT = 210

KERNEL = """\
#define STEP 16
#define ROWS (BLOCK_Y * TILE_Y)
#define COLS (BLOCK_X * TILE_X)

extern "C" __global__ void gemm(const float* __restrict__ a, const float* __restrict__ b,
                                float* __restrict__ out, int n) {
  __shared__ float a_tile[ROWS][STEP];
  __shared__ float b_tile[STEP][COLS];
  const int thread = threadIdx.y * BLOCK_X + threadIdx.x;
  const int row = blockIdx.y * ROWS;
  const int col = blockIdx.x * COLS;
  float sum[TILE_Y][TILE_X] = {};
  for (int k = 0; k < n; k += STEP) {
    for (int i = thread; i < ROWS * STEP; i += BLOCK_X * BLOCK_Y)
      a_tile[i / STEP][i % STEP] = a[(size_t)(row + i / STEP) * n + k + i % STEP];
    for (int i = thread; i < STEP * COLS; i += BLOCK_X * BLOCK_Y)
      b_tile[i / COLS][i % COLS] = b[(size_t)(k + i / COLS) * n + col + i % COLS];
    __syncthreads();
#pragma unroll
    for (int step = 0; step < STEP; ++step) {
      float left[TILE_Y];
#pragma unroll
      for (int y = 0; y < TILE_Y; ++y) left[y] = a_tile[threadIdx.y + y * BLOCK_Y][step];
#pragma unroll
      for (int x = 0; x < TILE_X; ++x) {
        const float right = b_tile[step][threadIdx.x + x * BLOCK_X];
#pragma unroll
        for (int y = 0; y < TILE_Y; ++y) sum[y][x] += left[y] * right;
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int y = 0; y < TILE_Y; ++y)
#pragma unroll
    for (int x = 0; x < TILE_X; ++x)
      out[(size_t)(row + threadIdx.y + y * BLOCK_Y) * n + col + threadIdx.x + x * BLOCK_X] =
          sum[y][x];
}
"""

PLAN = f"""\
TUNE = {TUNE}
WHERE = {list(WHERE)}


def launch(a, b, out):
    n = a.shape[0]
    grid = (n // (BLOCK_X * TILE_X), n // (BLOCK_Y * TILE_Y))
    gemm[grid, (BLOCK_X, BLOCK_Y)](a, b, out, n)
"""

CANDIDATE = f"```cuda\n{KERNEL}```\n```python\n{PLAN}```\n"

TASK = f"""\
import torch
from torch import nn

n = {SIZE}


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(n, n), torch.randn(n, n)]


def get_init_inputs():
    return []
"""
