// Runs CUDA device code on the host, one fiber a thread: slow, and the same every time. Has what the
// examples use: shared memory, block, warp and grid barriers, shuffles of a full warp, vectors. Knows
// nothing of how threads race on a device: a fiber runs until it meets a barrier.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ucontext.h>

struct uint3 {
  unsigned x, y, z;
};
struct float2 {
  float x, y;
};
struct float4 {  // not aligned: arrays of a fiber's stack are not either
  float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
template <typename T>
T __ldcg(const T* from) {
  return *from;
}

namespace host {

constexpr int warp_size = 32;
constexpr std::size_t stack_bytes = 48 * 1024;

struct Barrier {
  int members = 0, arrived = 0, generation = 0;
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  uint3 thread, block;
  Barrier *of_warp, *of_block;
  Fiber* first_of_warp;
  int lane;
  float slot;
  bool is_done = false;
};

inline ucontext_t scheduler;
inline Fiber* now = nullptr;
inline std::function<void()> body;
inline uint3 block_size, grid_size;
inline Barrier of_grid;
inline std::vector<float> dynamic_shared;

inline void release_if_complete(Barrier& barrier) {
  if (barrier.members > 0 && barrier.arrived == barrier.members) {
    barrier.arrived = 0;
    ++barrier.generation;
  }
}

inline void wait(Barrier& barrier) {
  const int generation = barrier.generation;
  ++barrier.arrived;
  release_if_complete(barrier);
  while (barrier.generation == generation) swapcontext(&now->context, &scheduler);
}

inline float shuffle(float value, int mask) {
  now->slot = value;
  wait(*now->of_warp);
  const float found = now->first_of_warp[now->lane ^ mask].slot;
  wait(*now->of_warp);
  return found;
}

inline void enter() {
  body();
  now->is_done = true;
  for (Barrier* barrier : {now->of_warp, now->of_block, &of_grid}) {
    --barrier->members;
    release_if_complete(*barrier);
  }
}

// Runs blocks [first, first + count) side by side until all of their threads are done.
inline void run_blocks(unsigned first, unsigned count) {
  const int threads = block_size.x * block_size.y * block_size.z;
  const int warps = (threads + warp_size - 1) / warp_size;
  std::vector<Fiber> fibers(threads * count);
  std::vector<Barrier> barriers((warps + 1) * count);
  of_grid = {static_cast<int>(threads * count), 0, 0};
  for (std::size_t i = 0; i < fibers.size(); ++i) {
    const unsigned number = first + i / threads, at = i % threads;
    Fiber& fiber = fibers[i];
    Barrier* own = &barriers[(number - first) * (warps + 1)];
    fiber.thread = {at % block_size.x, at / block_size.x % block_size.y,
                    at / block_size.x / block_size.y};
    fiber.block = {number % grid_size.x, number / grid_size.x % grid_size.y,
                   number / grid_size.x / grid_size.y};
    fiber.of_block = own;
    fiber.of_warp = own + 1 + at / warp_size;
    fiber.lane = at % warp_size;
    fiber.first_of_warp = &fiber - fiber.lane;
    ++fiber.of_block->members;
    ++fiber.of_warp->members;
    fiber.stack.reset(new char[stack_bytes]);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, enter, 0);
  }
  for (bool is_left = true; is_left;) {
    is_left = false;
    for (Fiber& fiber : fibers) {
      if (fiber.is_done) continue;
      is_left = true;
      now = &fiber;
      swapcontext(&scheduler, &fiber.context);
    }
  }
}

inline void launch(uint3 grid, uint3 block, std::size_t shared_bytes, bool is_cooperative,
                   std::function<void()> kernel) {
  grid_size = grid;
  block_size = block;
  body = std::move(kernel);
  const unsigned blocks = grid.x * grid.y * grid.z;
  if (is_cooperative) {  // static shared memory would be one for all blocks: not for such kernels
    run_blocks(0, blocks);
    return;
  }
  for (unsigned number = 0; number < blocks; ++number) {
    // What a block before has left, or nobody has set, is no number.
    dynamic_shared.assign(shared_bytes / sizeof(float) + 1, NAN);
    run_blocks(number, 1);
  }
}

struct Address {
  void* at;
  template <typename T>
  operator T*() const {
    return static_cast<T*>(at);
  }
};

}  // namespace host

namespace cooperative_groups {
struct Grid {
  void sync() const { host::wait(host::of_grid); }
};
inline Grid this_grid() { return {}; }
}  // namespace cooperative_groups

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define threadIdx (host::now->thread)
#define blockIdx (host::now->block)
#define blockDim (host::block_size)
#define gridDim (host::grid_size)
#define __syncthreads() host::wait(*host::now->of_block)
#define __syncwarp() host::wait(*host::now->of_warp)
#define __shfl_xor_sync(members, value, mask) host::shuffle(value, mask)
