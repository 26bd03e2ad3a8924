// Reductions over a warp or a block; all threads get the result, the same on every run.
//
//   kf::warp_reduce(value, kf::Sum())          over the 32 lanes of a warp
//   kf::block_reduce<THREADS>(value, kf::Max()) over a block of THREADS = blockDim.x threads
//   kf::Moments, kf::Softmax                   running mean and variance, running maximum and sum
//   of
//                                              exponentials: add values, then reduce with Join()
//
// A value is of 4 bytes or a struct of such; an operation takes two and returns one. All threads of
// the warp or block have to call.
#pragma once

namespace kf {

struct Sum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct Max {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

struct Min {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

// For values that know how to join, such as Moments.
struct Join {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return T::join(a, b);
  }
};

// Count, mean and sum of squared distances from it (Welford): no cancellation.
struct Moments {
  float count = 0.0f, mean = 0.0f, squares = 0.0f;

  __device__ __forceinline__ void add(float x) {
    count += 1.0f;
    const float distance = x - mean;
    mean += distance / count;
    squares += distance * (x - mean);
  }

  static __device__ __forceinline__ Moments join(Moments a, Moments b) {
    Moments both;
    both.count = a.count + b.count;
    const float share = both.count > 0.0f ? b.count / both.count : 0.0f;
    const float distance = b.mean - a.mean;
    both.mean = a.mean + distance * share;
    both.squares = a.squares + b.squares + distance * distance * a.count * share;
    return both;
  }

  // Of a population, as normalisations want it.
  __device__ __forceinline__ float variance() const { return squares / count; }
};

// Maximum and the sum of exp(x - maximum), in one pass. Begins empty; minus infinity adds nothing.
struct Softmax {
  float maximum = -INFINITY, sum = 0.0f;

  template <int N>
  __device__ __forceinline__ void add(const float (&x)[N]) {
    Softmax more;
#pragma unroll
    for (int i = 0; i < N; ++i) more.maximum = more.maximum < x[i] ? x[i] : more.maximum;
    more.maximum = maximum < more.maximum ? more.maximum : maximum;
    const float base = more.maximum == -INFINITY ? 0.0f : more.maximum;
    more.sum = sum * __expf(maximum - base);
#pragma unroll
    for (int i = 0; i < N; ++i) more.sum += __expf(x[i] - base);
    *this = more;
  }

  static __device__ __forceinline__ Softmax join(Softmax a, Softmax b) {
    Softmax both;
    both.maximum = a.maximum < b.maximum ? b.maximum : a.maximum;
    const float base = both.maximum == -INFINITY ? 0.0f : both.maximum;
    both.sum = a.sum * __expf(a.maximum - base) + b.sum * __expf(b.maximum - base);
    return both;
  }

  // log(sum of exp(x)).
  __device__ __forceinline__ float log_sum() const { return maximum + logf(sum); }
};

// What the lane with `lane ^ step` has.
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, int step) {
  static_assert(sizeof(T) % 4 == 0, "values of 4 bytes, or structs of them");
  constexpr int WORDS = sizeof(T) / 4;
  unsigned words[WORDS];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < WORDS; ++i) words[i] = __shfl_xor_sync(0xffffffffu, words[i], step);
  memcpy(&value, words, sizeof(T));
  return value;
}

// Over neighbouring lanes, WIDTH (a power of two) at a time.
template <int WIDTH = 32, class T, class Operation>
__device__ __forceinline__ T warp_reduce(T value, Operation operation) {
#pragma unroll
  for (int step = WIDTH / 2; step > 0; step /= 2) {
    value = operation(value, shuffle_xor(value, step));
  }
  return value;
}

template <int THREADS, class T, class Operation>
__device__ __forceinline__ T block_reduce(T value, Operation operation) {
  static_assert(THREADS % 32 == 0 && THREADS <= 1024, "whole warps");
  constexpr int WARPS = THREADS / 32;
  value = warp_reduce(value, operation);
  if constexpr (WARPS > 1) {
    __shared__ unsigned partial[WARPS * sizeof(T) / 4];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) memcpy(partial + warp * (sizeof(T) / 4), &value, sizeof(T));
    __syncthreads();
    memcpy(&value, partial, sizeof(T));
#pragma unroll
    for (int i = 1; i < WARPS; ++i) {
      T other;
      memcpy(&other, partial + i * (sizeof(T) / 4), sizeof(T));
      value = operation(value, other);
    }
    __syncthreads();  // the next reduction writes there
  }
  return value;
}

}  // namespace kf
