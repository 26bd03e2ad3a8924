#include "redraw_tensor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "parallel.hpp"

namespace kernel_foundry {
namespace {

using namespace redraw;

struct Format {
  std::string_view dtype;
  U32 element_bytes;
  U32 mantissa_bits;
};

constexpr Format formats[] = {
    {"float64", 8, 52}, {"float32", 4, 23},      {"float16", 2, 10},
    {"bfloat16", 2, 7}, {"float8_e4m3fn", 1, 3}, {"float8_e5m2", 1, 2},
};

constexpr std::size_t grain_blocks = std::size_t{1} << 14;
constexpr std::size_t chunk_blocks = 64;
constexpr std::size_t chunk_bytes = chunk_blocks * block_bytes;

struct Chunk {
  alignas(64) std::array<U32, 4 * chunk_blocks> words;
};

// Written so that a compiler makes vectors of it: no branches, and all blocks alike.
[[gnu::always_inline]] inline void fill_random(Chunk& chunk, U64 first, U32 index, U32 tensor,
                                               U64 key) {
  for (std::size_t i = 0; i < chunk_blocks; ++i) {
    U32 word[4];
    random_block(word, first + i, index, tensor, key);
    for (std::size_t w = 0; w < 4; ++w) chunk.words[4 * i + w] = word[w];
  }
}

template <typename Bits, U32 mantissa_bits>
[[gnu::always_inline]] inline void change_chunk(Bits* elements, const Chunk& random, U32 share,
                                                bool is_undone) {
  constexpr std::size_t most = chunk_bytes / sizeof(Bits);
  alignas(64) std::array<Bits, most> bits;
  std::memcpy(bits.data(), random.words.data(), chunk_bytes);
  for (std::size_t i = 0; i < most; ++i) {
    elements[i] = changed(elements[i], bits[i], mantissa_bits, share, is_undone);
  }
}

template <typename Bits, U32 mantissa_bits>
[[gnu::always_inline]] inline void redraw_blocks(unsigned char* data, std::size_t begin,
                                                 std::size_t end, const RedrawPass& pass) {
  Chunk random;
  alignas(64) std::array<Bits, chunk_bytes / sizeof(Bits)> elements{};
  for (std::size_t first = begin; first < end; first += chunk_blocks) {
    const std::size_t start = first * block_bytes;
    const std::size_t stop =
        std::min<std::size_t>(pass.size_bytes, std::min(end, first + chunk_blocks) * block_bytes);
    std::memcpy(elements.data(), data + start, stop - start);
    if (pass.undo_index != 0) {
      fill_random(random, first, pass.undo_index, pass.tensor, pass.key);
      change_chunk<Bits, mantissa_bits>(elements.data(), random, pass.undo_share, true);
    }
    if (pass.apply_index != 0) {
      fill_random(random, first, pass.apply_index, pass.tensor, pass.key);
      change_chunk<Bits, mantissa_bits>(elements.data(), random, pass.apply_share, false);
    }
    std::memcpy(data + start, elements.data(), stop - start);
  }
}

}  // namespace

// Several versions of it, of which the loader takes the one for the processor.
[[gnu::target_clones("arch=skylake-avx512", "avx2", "default")]]
void redraw_range(unsigned char* data, std::size_t begin, std::size_t end, const RedrawPass& pass) {
  switch (pass.mantissa_bits) {
  case 52: redraw_blocks<U64, 52>(data, begin, end, pass); break;
  case 23: redraw_blocks<U32, 23>(data, begin, end, pass); break;
  case 10: redraw_blocks<U16, 10>(data, begin, end, pass); break;
  case 7: redraw_blocks<U16, 7>(data, begin, end, pass); break;
  case 3: redraw_blocks<U8, 3>(data, begin, end, pass); break;
  default: redraw_blocks<U8, 2>(data, begin, end, pass); break;
  }
}

RedrawPass redraw_pass(const RedrawnTensor& tensor, std::uint64_t key, std::uint32_t undo_index,
                       std::uint32_t apply_index) {
  const auto* format = std::ranges::find(formats, tensor.dtype, &Format::dtype);
  if (format == std::end(formats)) {
    throw std::invalid_argument("no floating-point type called " + tensor.dtype);
  }
  return {key,
          tensor.size_bytes,
          tensor.number,
          format->element_bytes,
          format->mantissa_bits,
          undo_index,
          apply_index,
          redraw_share(key, undo_index, tensor.number),
          redraw_share(key, apply_index, tensor.number)};
}

void redraw_on_host(std::uintptr_t address, const RedrawPass& pass) {
  if (pass.undo_index == pass.apply_index) return;
  const std::size_t blocks = (pass.size_bytes + block_bytes - 1) / block_bytes;
  parallel_for(blocks, grain_blocks, [&](std::size_t, std::size_t begin, std::size_t end) {
    redraw_range(reinterpret_cast<unsigned char*>(address), begin, end, pass);
  });
}

}  // namespace kernel_foundry
