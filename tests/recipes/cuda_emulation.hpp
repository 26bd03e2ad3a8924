// Runs CUDA device code on the host, for tests: the threads of a block are fibers of one thread.
//
// Knows barriers, shuffles, shared memory and the vector types; blocks run one after the other. It
// is built with the address sanitizer, so that an access beyond a tensor ends the program. It does
// not know how memory is ordered between blocks, and nothing of speed.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __constant__ static const
#define __shared__ static
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline dim3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;

using std::max;
using std::min;

namespace emulation {

constexpr std::size_t stack_bytes = 64 * 1024;

struct Barrier {
  int waiting = 0, expected = 0;
  unsigned generation = 0;
};

struct Warp {
  Barrier barrier;
  std::uint32_t values[32] = {};
};

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
  bool is_inside;
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  dim3 index;
  unsigned number = 0;
  bool is_done = false;
  std::vector<Copy> open;                 // copies of the group that is not committed
  std::deque<std::vector<Copy>> copies;   // committed groups that nobody has waited for
};

inline ucontext_t scheduler;
inline std::vector<Fiber>* fibers = nullptr;
inline Fiber* current = nullptr;
inline std::vector<Warp> warps;
inline Barrier block_barrier;
inline std::function<void()> body;
inline char* shared = nullptr;
inline bool has_progressed = false;

[[noreturn]] inline void fail(const char* message) {
  std::fprintf(stderr, "emulation: %s (block %u,%u,%u)\n", message, blockIdx.x, blockIdx.y,
               blockIdx.z);
  std::exit(3);
}

inline void release_when_complete(Barrier& barrier) {
  if (barrier.waiting == 0 || barrier.waiting < barrier.expected) return;
  barrier.waiting = 0;
  ++barrier.generation;
  has_progressed = true;
}

inline void wait(Barrier& barrier) {
  const unsigned generation = barrier.generation;
  ++barrier.waiting;
  release_when_complete(barrier);
  while (barrier.generation == generation) swapcontext(&current->context, &scheduler);
}

inline void leave(Barrier& barrier) {
  --barrier.expected;
  release_when_complete(barrier);
}

inline Warp& warp() { return warps[current->number / 32]; }

inline void run_fiber() {
  body();
  current->is_done = true;
  has_progressed = true;
  leave(block_barrier);
  leave(warp().barrier);
  swapcontext(&current->context, &scheduler);
}

inline void start(Fiber& fiber, unsigned number, const dim3& block) {
  fiber.number = number;
  fiber.index = {number % block.x, number / block.x % block.y, number / (block.x * block.y)};
  fiber.is_done = false;
  fiber.open.clear();
  fiber.copies.clear();
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = stack_bytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, run_fiber, 0);
  ++block_barrier.expected;
  ++warps[number / 32].barrier.expected;
}

inline void run_block(std::vector<Fiber>& threads) {
  block_barrier = {};
  warps.assign((threads.size() + 31) / 32, {});
  for (unsigned i = 0; i < threads.size(); ++i) start(threads[i], i, blockDim);
  for (std::size_t done = 0; done < threads.size();) {
    has_progressed = false;
    for (Fiber& fiber : threads) {
      if (fiber.is_done) continue;
      current = &fiber;
      threadIdx = fiber.index;
      swapcontext(&scheduler, &fiber.context);
      done += fiber.is_done;
    }
    if (!has_progressed) fail("deadlock: not every thread reaches a barrier");
  }
}

inline void launch(dim3 grid, dim3 block, std::size_t shared_bytes, std::function<void()> kernel) {
  std::vector<Fiber> threads(block.x * block.y * block.z);
  fibers = &threads;
  body = std::move(kernel);
  gridDim = grid;
  blockDim = block;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z) {
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
        // New for every block, so that nothing is left of the one before.
        std::vector<char> memory(shared_bytes + 256, char(0xff));
        const auto start = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
        shared = reinterpret_cast<char*>(start);
        run_block(threads);
      }
    }
  }
}

template <class T> T exchange(T value, int from) {
  static_assert(sizeof(T) == 4, "shuffles of four bytes");
  Warp& own = warp();
  const int lane = current->number % 32;
  std::memcpy(&own.values[lane], &value, 4);
  wait(own.barrier);
  T result;
  std::memcpy(&result, &own.values[from], 4);
  wait(own.barrier);
  return result;
}

inline void finish_copies(std::size_t but) {
  while (current->copies.size() > but) {
    for (const Copy& copy : current->copies.front()) {
      if (copy.is_inside) std::memcpy(copy.to, copy.from, copy.bytes);
      else std::memset(copy.to, 0, copy.bytes);
    }
    current->copies.pop_front();
  }
}

// A tensor: exactly as long as it is, on 256 bytes, as candidates are promised.
template <class T> class Buffer {
 public:
  explicit Buffer(std::size_t count, const char* file = nullptr)
      : count_(count),
        data_(static_cast<T*>(std::aligned_alloc(256, (count * sizeof(T) + 255) / 256 * 256))) {
    std::memset(data_, 0xff, count * sizeof(T));
    poison();
    if (file == nullptr) return;
    std::FILE* from = std::fopen(file, "rb");
    if (from == nullptr || std::fread(data_, sizeof(T), count, from) != count) fail("no input");
    std::fclose(from);
  }
  T* at(std::size_t offset_bytes) const {
    return reinterpret_cast<T*>(reinterpret_cast<char*>(data_) + offset_bytes);
  }
  void save(const char* file) const {
    std::FILE* to = std::fopen(file, "wb");
    if (to == nullptr || std::fwrite(data_, sizeof(T), count_, to) != count_) fail("no output");
    std::fclose(to);
  }
  void clear() { std::memset(data_, 0, count_ * sizeof(T)); }

 private:
  void poison();
  std::size_t count_;
  T* data_;
};

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __asan_poison_memory_region(const volatile void*, std::size_t);
template <class T> void Buffer<T>::poison() {
  const std::size_t bytes = count_ * sizeof(T), whole = (bytes + 255) / 256 * 256;
  __asan_poison_memory_region(reinterpret_cast<char*>(data_) + bytes, whole - bytes);
}
#else
template <class T> void Buffer<T>::poison() {}
#endif

}  // namespace emulation

inline void __syncthreads() { emulation::wait(emulation::block_barrier); }
inline void __syncwarp(unsigned = ~0u) { emulation::wait(emulation::warp().barrier); }
template <class T> T __shfl_xor_sync(unsigned, T value, int step, int = 32) {
  return emulation::exchange(value, (emulation::current->number % 32) ^ step);
}
template <class T> T __shfl_down_sync(unsigned, T value, int step, int width = 32) {
  const int lane = emulation::current->number % 32;
  return emulation::exchange(value, lane % width + step < width ? lane + step : lane);
}
template <class T> T __shfl_sync(unsigned, T value, int from, int width = 32) {
  const int lane = emulation::current->number % 32;
  return emulation::exchange(value, lane / width * width + from % width);
}

template <class T> T __ldg(const T* from) { return *from; }
template <class T> T __ldcs(const T* from) { return *from; }
template <class T> void __stcs(T* to, T value) { *to = value; }
template <class T> void __stwb(T* to, T value) { *to = value; }
inline float __expf(float x) { return expf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
template <class T> T atomicAdd(T* to, T value) {
  const T old = *to;
  *to += value;
  return old;
}
