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
    {"float64", 8, 52},      {"float32", 4, 23},    {"float16", 2, 10}, {"bfloat16", 2, 7},
    {"float8_e4m3fn", 1, 3}, {"float8_e5m2", 1, 2}, {"bool", 1, 0},     {"int8", 1, 0},
    {"uint8", 1, 0},         {"int16", 2, 0},       {"uint16", 2, 0},   {"int32", 4, 0},
    {"uint32", 4, 0},        {"int64", 8, 0},       {"uint64", 8, 0},
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

template <typename Bits>
void reorder(Bits* at, std::size_t begin, std::size_t end, const RedrawPass& pass) {
  const U64 count = pass.size_bytes / sizeof(Bits), turn = pass.apply_turn;
  for (std::size_t block = begin; block < end; ++block) {
    U32 word[4];
    random_block(word, block, pass.apply_index, order_tensor, pass.key);
    const U64 first = U64{block} * block_pairs;
    const U64 pairs = std::min<U64>(block_pairs, count / 2 - first);
    for (U64 i = 0; i < pairs; ++i) {
      exchange(at[behind(turn, first + i, count)], at[before(turn, first + i, count)],
               word[i / 32] >> (i % 32));
    }
  }
}

void reorder_on_host(std::uintptr_t address, const RedrawPass& pass) {
  const std::size_t pairs = pass.size_bytes / pass.element_bytes / 2;
  const std::size_t blocks = (pairs + block_pairs - 1) / block_pairs;
  parallel_for(blocks, grain_blocks / 64, [&](std::size_t, std::size_t begin, std::size_t end) {
    switch (pass.element_bytes) {
    case 1: reorder(reinterpret_cast<U8*>(address), begin, end, pass); break;
    case 2: reorder(reinterpret_cast<U16*>(address), begin, end, pass); break;
    case 4: reorder(reinterpret_cast<U32*>(address), begin, end, pass); break;
    default: reorder(reinterpret_cast<U64*>(address), begin, end, pass); break;
    }
  });
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
    throw std::invalid_argument("no type called " + tensor.dtype + " is redrawn");
  }
  const std::size_t count = tensor.size_bytes / format->element_bytes;
  return {key,
          tensor.size_bytes,
          tensor.number,
          format->element_bytes,
          format->mantissa_bits,
          undo_index,
          apply_index,
          redraw_share(key, undo_index, tensor.number),
          redraw_share(key, apply_index, tensor.number),
          redraw_turn(key, undo_index, count),
          redraw_turn(key, apply_index, count)};
}

std::vector<RedrawPass> order_passes(const RedrawPass& pass) {
  std::vector<RedrawPass> passes;
  RedrawPass one = pass;
  one.undo_index = 0;
  one.apply_index = pass.undo_index;
  one.apply_turn = pass.undo_turn;
  if (pass.undo_index != 0) passes.push_back(one);
  one.apply_index = pass.apply_index;
  one.apply_turn = pass.apply_turn;
  if (pass.apply_index != 0) passes.push_back(one);
  return passes;
}

void redraw_on_host(std::uintptr_t address, const RedrawPass& pass) {
  if (pass.undo_index == pass.apply_index) return;
  if (pass.mantissa_bits == 0) {
    for (const RedrawPass& one : order_passes(pass)) reorder_on_host(address, one);
    return;
  }
  const std::size_t blocks = (pass.size_bytes + block_bytes - 1) / block_bytes;
  parallel_for(blocks, grain_blocks, [&](std::size_t, std::size_t begin, std::size_t end) {
    redraw_range(reinterpret_cast<unsigned char*>(address), begin, end, pass);
  });
}

}  // namespace kernel_foundry
