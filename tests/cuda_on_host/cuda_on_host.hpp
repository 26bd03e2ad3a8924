// What CUDA device code needs to run on the host, the same way every time; `cuda_on_host.cpp` is
// the rest of it.
//
// Has barriers of warp, block and grid, shuffles of a warp, shared memory, copies that run as late
// as they may, vectors, and tensors whose bounds and alignment the address sanitizer watches. A
// launch in which not every thread reaches a barrier ends the program. Knows nothing of speed, nor
// of how threads race on a device: a thread runs until it meets a barrier, and blocks run one after
// the other unless the launch is cooperative. Static shared memory is one for all blocks, so a
// block sees in it what the one before has left.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __constant__ static const
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
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

extern dim3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;

template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}

namespace host {

extern char* dynamic_shared;  // of the block that runs

void wait_for_warp();
void wait_for_block();
void wait_for_grid();
unsigned lane();
std::uint32_t exchange(std::uint32_t value, unsigned from);

// What `cp.async` does: the copy happens when its group is waited for, as late as a device may.
void copy_later(void* to, const void* from, std::size_t bytes, bool is_inside);
void commit_copies();
void finish_copies(std::size_t all_but);

void launch(dim3 grid, dim3 block, std::size_t shared_bytes, bool is_cooperative,
            void (*call)(const void*), const void* kernel);

template <class Kernel>
void launch(dim3 grid, dim3 block, std::size_t shared_bytes, bool is_cooperative,
            const Kernel& kernel) {
  const auto call = [](const void* self) { (*static_cast<const Kernel*>(self))(); };
  launch(grid, block, shared_bytes, is_cooperative, call, &kernel);
}

template <class T>
T exchange_any(T value, unsigned from) {
  static_assert(sizeof(T) == 4, "shuffles of four bytes");
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = exchange(bits, from);
  std::memcpy(&value, &bits, 4);
  return value;
}

struct Address {
  void* at;
  template <class T>
  operator T*() const {
    return static_cast<T*>(at);
  }
};

// A tensor in a file, which is exactly as long; what is beyond either end cannot be touched.
class Buffer {
 public:
  explicit Buffer(const char* path);
  Buffer(const Buffer&) = delete;
  Address at() const { return {data_}; }
  void clear() { std::memset(data_, 0, bytes_); }

 private:
  std::size_t bytes_;
  char* data_;
};

}  // namespace host

inline void __syncthreads() { host::wait_for_block(); }
inline void __syncwarp(unsigned = ~0u) { host::wait_for_warp(); }
template <class T>
T __shfl_xor_sync(unsigned, T value, int step, int = warpSize) {
  return host::exchange_any(value, host::lane() ^ step);
}
template <class T>
T __shfl_down_sync(unsigned, T value, int step, int width = warpSize) {
  const int lane = host::lane();
  return host::exchange_any(value, lane % width + step < width ? lane + step : lane);
}
template <class T>
T __shfl_up_sync(unsigned, T value, int step, int width = warpSize) {
  const int lane = host::lane();
  return host::exchange_any(value, lane % width >= step ? lane - step : lane);
}
template <class T>
T __shfl_sync(unsigned, T value, int from, int width = warpSize) {
  return host::exchange_any(value, host::lane() / width * width + from % width);
}

namespace cooperative_groups {
struct Grid {
  void sync() const { host::wait_for_grid(); }
};
inline Grid this_grid() { return {}; }
}  // namespace cooperative_groups

template <class T>
T __ldg(const T* from) {
  return *from;
}
template <class T>
T __ldcg(const T* from) {
  return *from;
}
template <class T>
T __ldcs(const T* from) {
  return *from;
}
template <class T>
void __stcs(T* to, T value) {
  *to = value;
}
template <class T>
void __stwb(T* to, T value) {
  *to = value;
}
inline float __expf(float x) { return expf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
template <class T>
T atomicAdd(T* to, T value) {
  const T old = *to;
  *to += value;
  return old;
}
