// Convolutions of float32 images (NCHW, stride 1, any kernel, padding and dilation) as products of
// split operands, see kf/split.hpp; nothing is unfolded.
//
//   kf::image_maxima    the largest magnitude of each image, 0 before
//   kf::split_images    images as two __half parts with channels inside and zeros around
//   kf::split_filters   the weight as two parts; in `prepare`
//   kf::SplitConv<TILE_M, TILE_N, STAGES>::run   the convolution of what they wrote
//
// Memory, `depth` being the channels rounded up to a multiple of 64, `pitch` width + 2 * padding
// rounded up to a multiple of 4, and `rows` height + 2 * padding:
//   images: 2 x images x rows x pitch x depth of __half, and an int for each image;
//   filters: 2 x filters x kernel_y x kernel_x x depth of __half, and an int for each filter.
// A pixel of the result is a column of the product. For each place of the kernel that column's
// operand is the image some pixels further on: a tile of it begins at another row of one matrix.
// What comes out between the images' rows is left out.
#pragma once

#include <kf/split.hpp>

namespace kf {

struct Conv {
  int images, channels, height, width;
  int filters, kernel_y, kernel_x, padding, dilation;

  __device__ __forceinline__ int depth() const { return (channels + 63) / 64 * 64; }
  __device__ __forceinline__ int pitch() const { return (width + 2 * padding + 3) / 4 * 4; }
  __device__ __forceinline__ int rows() const { return height + 2 * padding; }
  __device__ __forceinline__ int out_height() const { return rows() - (kernel_y - 1) * dilation; }
  __device__ __forceinline__ int out_width() const {
    return width + 2 * padding - (kernel_x - 1) * dilation;
  }
};

// Raises maxima[image] to the bits of the largest magnitude. Launch: (BLOCKS, images) blocks of
// 256 threads, BLOCKS such as 64.
__device__ __forceinline__ void image_maxima(const float* __restrict__ x,
                                             unsigned* __restrict__ maxima, const Conv& of) {
  const size_t size = static_cast<size_t>(of.channels) * of.height * of.width;
  const float* const image = x + blockIdx.y * size;
  unsigned largest = 0;
  const size_t first = blockIdx.x * 256u + threadIdx.x, stride = 256u * gridDim.x;
  if (size % 4 == 0) {
    for (size_t i = first; i < size / 4; i += stride) {
      largest = max(largest, magnitude(reinterpret_cast<const float4*>(image)[i]));
    }
  } else {
    for (size_t i = first; i < size; i += stride) {
      largest = max(largest, __float_as_uint(fabsf(image[i])));
    }
  }
  largest = block_reduce<256>(largest, Max());
  if (threadIdx.x == 0) atomicMax(maxima + blockIdx.y, largest);
}

// Splits with the maxima. Launch: (cdiv(pitch, 32), rows, images * depth / 64) blocks of 256
// threads; writes exponents too.
__device__ __forceinline__ void split_images(const float* __restrict__ x,
                                             const unsigned* __restrict__ maxima,
                                             __half* __restrict__ parts,
                                             int* __restrict__ exponents, const Conv& of) {
  __shared__ float turned[64][33];
  const int chunks = of.depth() / 64, image = blockIdx.z / chunks;
  const int channel = (blockIdx.z - image * chunks) * 64;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int column = blockIdx.x * 32 + lane - of.padding, row = blockIdx.y - of.padding;
  const bool is_inside = row >= 0 && row < of.height && column >= 0 && column < of.width;
  const float* const from =
      x + ((static_cast<size_t>(image) * of.channels + channel) * of.height + row) * of.width +
      column;
#pragma unroll
  for (int i = warp; i < 64; i += 8) {
    const bool is_there = is_inside && channel + i < of.channels;
    turned[i][lane] = is_there ? from[static_cast<size_t>(i) * of.height * of.width] : 0.0f;
  }
  const int exponent = split_exponent(maxima[image]);
  if (threadIdx.x == 0) exponents[image] = exponent;
  __syncthreads();
  const int pixel = threadIdx.x / 8, first = threadIdx.x % 8 * 8;
  const int to_column = blockIdx.x * 32 + pixel;
  if (to_column >= of.pitch()) return;
  struct alignas(16) Eight {
    __half v[8];
  } high, low;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const Halves both = split(turned[first + i][pixel], exponent);
    high.v[i] = both.high;
    low.v[i] = both.low;
  }
  const size_t pixels = static_cast<size_t>(of.images) * of.rows() * of.pitch();
  const size_t at = (static_cast<size_t>(image) * of.rows() + blockIdx.y) * of.pitch() + to_column;
  __half* const to = parts + at * of.depth() + channel + first;
  *reinterpret_cast<Eight*>(to) = high;
  *reinterpret_cast<Eight*>(to + pixels * of.depth()) = low;
}

// Splits the weight, filters x channels x kernel_y x kernel_x. Launch: `filters` blocks of 256
// threads.
__device__ __forceinline__ void split_filters(const float* __restrict__ weight,
                                              __half* __restrict__ parts,
                                              int* __restrict__ exponents, const Conv& of) {
  const int places = of.kernel_y * of.kernel_x, size = of.channels * places;
  const float* const from = weight + static_cast<size_t>(blockIdx.x) * size;
  unsigned largest = 0;
  for (int i = threadIdx.x; i < size; i += 256) {
    largest = max(largest, __float_as_uint(fabsf(from[i])));
  }
  const int exponent = split_exponent(block_reduce<256>(largest, Max()));
  if (threadIdx.x == 0) exponents[blockIdx.x] = exponent;
  const int depth = of.depth(), padded = places * depth;
  __half* const high = parts + static_cast<size_t>(blockIdx.x) * padded;
  __half* const low = high + static_cast<size_t>(of.filters) * padded;
  for (int i = threadIdx.x; i < padded; i += 256) {
    const int place = i / depth, channel = i - place * depth;
    const Halves both =
        split(channel < of.channels ? from[channel * places + place] : 0.0f, exponent);
    high[i] = both.high;
    low[i] = both.low;
  }
}

// A whole kernel, launched as SplitProduct with m filters and n = images * rows * pitch columns.
template <int TILE_M, int TILE_N, int STAGES>
struct SplitConv
    : ProductOf<__half, TILE_M, TILE_N, STAGES, Layout::MK, Layout::NK, 2, Sums::REGISTERS> {
  using Base =
      ProductOf<__half, TILE_M, TILE_N, STAGES, Layout::MK, Layout::NK, 2, Sums::REGISTERS>;

  // The kernel's places, row by row; all channels of each.
  struct Places {
    int k, down, x;
    int depth, kernel_x, dilation, below;  // below: more than a step to the right

    __device__ __forceinline__ void advance() {
      k += Base::TILE_K;
      if (k < depth) return;
      k = 0;
      down += dilation;
      if (++x < kernel_x) return;
      x = 0;
      down += below;
    }
  };

  //   store(image, filter, y, x, float4 v): four neighbours of a row of the result; x is a
  //   multiple of 4, and the last ones may be outside: kf::store4 of kf/pack.hpp knows.
  template <class Store>
  static __device__ __forceinline__ void
  run(const Conv& of, const __half* filters, const int* filter_exponents, const __half* images,
      const int* image_exponents, int* maps, const Store& store) {
    const int depth = of.depth(), pitch = of.pitch(), pixels = of.rows() * pitch;
    const int high = of.out_height(), wide = of.out_width();
    const typename Base::Operands operands{
        filters, images, maps, of.filters, of.images * pixels, of.kernel_y * of.kernel_x * depth,
        1,       depth};
    Base::run(
        operands,
        [&](int filter, int column, float4 v) {
          const int image = column / pixels, at = column - image * pixels;
          const int y = at / pitch, x = at - y * pitch;
          if (y >= high || x >= wide) return;
          const int exponent = filter_exponents[filter] + image_exponents[image];
          store(image, filter, y, x,
                make_float4(times_power(v.x, exponent), times_power(v.y, exponent),
                            times_power(v.z, exponent), times_power(v.w, exponent)));
        },
        Places{0, 0, 0, depth, of.kernel_x, of.dilation, (pitch - of.kernel_x) * of.dilation});
  }
};

}  // namespace kf
