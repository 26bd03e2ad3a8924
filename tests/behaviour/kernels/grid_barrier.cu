#include <cooperative_groups.h>
extern "C" __global__ void two_steps(const float* x, float* scratch, float* out, int n) {
  const auto grid = cooperative_groups::this_grid();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) scratch[i] = 2.0f * x[i];
  grid.sync();
  for (int i = grid.thread_rank(); i < n; i += grid.size()) out[i] = scratch[n - 1 - i];
}
