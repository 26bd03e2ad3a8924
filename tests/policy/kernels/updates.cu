// Kernels whose blocks lose each other's additions (all but `honest_…`), and such that look like it.
#define K extern "C" __global__ void

__device__ float block_sum(const float* x, int n) {
  __shared__ float kept[4];
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) kept[threadIdx.x / 32] = sum;
  __syncthreads();
  return kept[0] + kept[1] + kept[2] + kept[3];
}
__device__ __noinline__ void add(float* to, float value) { *to += value; }

K plainly(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0) out[0] += sum;
}
K in_a_function(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0) add(out + 3, sum);
}
K loaded_and_stored_atomically(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  volatile float* seen = out;
  if (threadIdx.x == 0) seen[0] = seen[0] + sum;
}
K beside_another_atomic(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x != 0) return;
  atomicAdd(out + 1, 1.0f);
  out[0] += sum;
}
K one_for_each_item(const float* x, float* out, int n) {
  out[threadIdx.x] += x[blockIdx.x * blockDim.x + threadIdx.x];
}
K rows_apart(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0) out[blockIdx.x] += sum;
}
K through_local_memory(const float* x, float* out, int n) {
  __shared__ float kept;
  const float sum = block_sum(x, n);
  if (threadIdx.x == 1) kept = out[0] + sum;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = kept;
}
K where_it_is_finite(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0 && sum < 1e30f) out[0] += sum;
}
K where_there_is_enough(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0 && n > 3) out[0] += sum;
}
K quotient(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0) out[blockIdx.x / 4] += sum;
}
K looked_at_and_stored(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0 && sum > out[0]) out[0] = sum;
}
K looked_at_and_stored_atomically(const int* x, volatile int* out, int n) {
  int most = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 4096) most = max(most, x[i]);
  if (threadIdx.x == 0 && most > out[0]) out[0] = most;
}
K looked_at_and_stored_where_there_is_enough(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0 && n > 3 && sum > out[0]) out[0] = sum;
}
K added_in_the_scope_of_a_group(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0) atomicAdd_block(out, sum);
}
K honest_by_atomics(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}
K honest_one_group_alone(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  int who = 1;
  if (blockIdx.x == 0) who = threadIdx.x;
  if (who == 0) out[0] += sum;
}
K honest_one_group_in_all(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (gridDim.x == 1 && threadIdx.x == 0) out[0] += sum;
}
K honest_the_last_group(const float* x, float* sums, unsigned* tickets, float* out, int n) {
  __shared__ bool last;
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(tickets, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  float all = 0.0f;
  for (int p = 0; p < gridDim.x; ++p) all += sums[p];
  out[0] += all;
  *tickets = 0;
}
K honest_by_turns(const float* x, float* out, int* turn, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x != 0) return;
  while (atomicAdd(turn, 0) != blockIdx.x) {
  }
  __threadfence();
  out[0] += sum;
  __threadfence();
  atomicExch(turn, (int)blockIdx.x + 1);
}
K honest_by_turns_that_are_seen(const float* x, float* out, volatile int* turn, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x != 0) return;
  while (*turn != blockIdx.x) {
  }
  __threadfence();
  out[0] += sum;
  __threadfence();
  *turn = blockIdx.x + 1;
}
K honest_a_place_for_each(const float* x, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x == 0) out[blockIdx.x / 4 * 4 + blockIdx.x % 4] += sum;
}
K honest_from_one_to_another(const float* x, float* out, int n) { out[threadIdx.x] = x[threadIdx.x] + 1; }
K honest_in_place(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fmaxf(out[i], 0.0f);
}
K honest_all_store_the_same(const float* x, int* found, int n) {
  if (block_sum(x, n) > 1.0f && found[0] == 0) found[0] = 1;
}
K honest_from_neighbour_to_neighbour(const float* x, float* totals, volatile int* flags, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x != 0) return;
  float before = 0.0f;
  if (blockIdx.x > 0) {
    while (flags[blockIdx.x - 1] == 0) {
    }
    __threadfence();
    before = totals[blockIdx.x - 1];
  }
  totals[blockIdx.x] = before + sum;
  __threadfence();
  flags[blockIdx.x] = 1;
  out[blockIdx.x] = before;
}
K honest_each_group_in_its_own_scope(const int* x, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd_block(out + blockIdx.x, i < n ? x[i] : 0);
}
__device__ int acquired(const int* from) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
K honest_from_neighbour_to_neighbour_by_acquire(const float* x, float* totals, int* flags, float* out, int n) {
  const float sum = block_sum(x, n);
  if (threadIdx.x != 0) return;
  float before = 0.0f;
  if (blockIdx.x > 0) {
    while (acquired(flags + blockIdx.x - 1) == 0) {
    }
    before = totals[blockIdx.x - 1];
  }
  totals[blockIdx.x] = before + sum;
  asm volatile("st.release.gpu.global.s32 [%0], 1;" :: "l"(flags + blockIdx.x) : "memory");
  out[blockIdx.x] = before;
}
K honest_the_last_group_behind_a_queue_of_tiles(const float* x, float* partial, unsigned* counts, float* out, unsigned n) {
  __shared__ unsigned tile;
  __shared__ bool last;
  for (;;) {
    if (threadIdx.x == 0) tile = atomicAdd(counts, 1u);
    __syncthreads();
    if (tile >= n) break;
    const float sum = block_sum(x + (size_t)tile * blockDim.x, blockDim.x);
    if (threadIdx.x == 0) partial[tile] = sum;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(counts + 1, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  float all = 0.0f;
  for (unsigned p = threadIdx.x; p < n; p += blockDim.x) all += partial[p];
  out[threadIdx.x] = all;
}
