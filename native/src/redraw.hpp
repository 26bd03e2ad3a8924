// How inputs change from call to call: each element by random bits that its place, the number of
// the call and a key decide, and back again by the same bits. Floats get other values; of integers,
// labels and masks pairs change places, so that they stay what they are an index or a choice of.
//
// For the host's compiler and, as text, for the device's: it includes nothing.
#pragma once

#ifdef __CUDACC_RTC__
#define KERNEL_FOUNDRY_BOTH __device__ __forceinline__
#else
#define KERNEL_FOUNDRY_BOTH [[gnu::always_inline]] inline
#endif

namespace kernel_foundry {

// One pass over one tensor: the change of `undo_index` is taken back, that of `apply_index` made.
// Index 0 is the tensor as it was drawn.
struct RedrawPass {
  unsigned long long key;
  unsigned long long size_bytes;
  unsigned int tensor;         // tells the tensors of a set apart
  unsigned int element_bytes;  // 1, 2, 4 or 8
  unsigned int mantissa_bits;  // 0: elements change places
  unsigned int undo_index;
  unsigned int apply_index;
  unsigned int undo_share;  // `redraw_share` of either
  unsigned int apply_share;
  unsigned long long undo_turn;  // `redraw_turn` of either
  unsigned long long apply_turn;
};

// Ranges that get random bits, or lose them. By value: what lies in device memory could be read by
// the kernels that it is about.
struct MaskedRanges {
  enum : unsigned int { most = 128 };
  unsigned long long key;
  unsigned int first;  // number of the first range
  unsigned int count;
  struct {
    unsigned long long address, size_bytes;
  } all[most];
};

namespace redraw {

using U8 = unsigned char;
using U16 = unsigned short;
using U32 = unsigned int;
using U64 = unsigned long long;

enum : U32 {
  block_bytes = 16,   // what one counter gives bits for
  block_pairs = 128,  // the same, of a bit each
  order_tensor =
      ~U32{0},  // tensors of one length change places alike: elements may belong together
};

KERNEL_FOUNDRY_BOTH U32 high_half(U32 a, U32 b) {
#ifdef __CUDACC_RTC__
  return __umulhi(a, b);
#else
  return static_cast<U32>((U64{a} * b) >> 32);
#endif
}

// The bits of one block of one tensor in one call. Source: Philox-4x32 with 7 rounds; Salmon et
// al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
KERNEL_FOUNDRY_BOTH void random_block(U32 (&word)[4], U64 block, U32 index, U32 tensor, U64 key) {
  word[0] = static_cast<U32>(block);
  word[1] = static_cast<U32>(block >> 32);
  word[2] = index;
  word[3] = tensor;
  U32 first_key = static_cast<U32>(key), second_key = static_cast<U32>(key >> 32);
  for (int round = 0; round < 7; ++round) {
    constexpr U32 first = 0xD2511F53u, second = 0xCD9E8D57u;
    const U32 a = word[0], b = word[2];
    word[0] = high_half(second, b) ^ word[1] ^ first_key;
    word[1] = second * b;
    word[2] = high_half(first, a) ^ word[3] ^ second_key;
    word[3] = first * a;
    first_key += 0x9E3779B9u;
    second_key += 0xBB67AE85u;
  }
}

// 64-bit elements need 64 bits of work, all others 32.
template <typename Bits>
struct Work {
  using Type = U32;
};
template <>
struct Work<U64> {
  using Type = U64;
};

// Bits at the end of a mantissa that stay: of float32 those that float16 and TF32 lack, of float64
// those that float32 lacks. What is drawn ends in such that rounding to fewer bits shows, and no
// call is to be told by its endings.
KERNEL_FOUNDRY_BOTH constexpr U32 kept_bits(U32 mantissa_bits) {
  return mantissa_bits == 23 ? 13 : mantissa_bits == 52 ? 29 : 0;
}

// An element changed (`is_undone`: changed back) by as many random bits as it has. The start of a
// mantissa other than 0 moves by a random step on the circle of all starts that do not make it 0,
// the ends of float32's and float64's stay. In a share of the elements below 1 the exponent moves
// within its pair (2k + 1, 2k + 2), so that bounds such as 1 are kept;
// beyond 1 a change of scale would make exponentials of what they never are. Zeros and powers of
// two stay, and what has the greatest exponent: infinities and NaN.
template <typename Bits>
KERNEL_FOUNDRY_BOTH Bits changed(Bits element, Bits random, U32 mantissa_bits, U32 share,
                                 bool is_undone) {
  using Wide = typename Work<Bits>::Type;
  constexpr U32 width = 8 * sizeof(Bits);
  const U32 spare_bits = width - mantissa_bits;  // of the random bits: they decide on the exponent
  const U32 kept = kept_bits(mantissa_bits);
  const Wide bits = element, greatest = (Wide{1} << (spare_bits - 1)) - 1;
  const Wide mantissa = bits & ((Wide{1} << mantissa_bits) - 1);
  const Wide exponent = (bits >> mantissa_bits) & greatest;
  const Wide ending = mantissa & ((Wide{1} << kept) - 1), least = ending == 0;
  const Wide circle = (Wide{1} << (mantissa_bits - kept)) - least;
  const Wide step = static_cast<Wide>(random) >> (spare_bits + kept);
  const Wide chance = static_cast<Wide>(random) & ((Wide{1} << spare_bits) - 1);
  Wide place = (mantissa >> kept) - least;
  place += is_undone ? circle - step : step;
  place = place >= circle ? place - circle : place;
  const Wide partner = ((exponent - 1) ^ 1) + 1;
  const bool moves = exponent != 0 && exponent < greatest / 2 &&
                     chance < static_cast<Wide>(share >> (32 - spare_bits));
  const Wide sign = bits & (Wide{1} << (width - 1));
  const Wide result =
      sign | ((moves ? partner : exponent) << mantissa_bits) | ((place + least) << kept) | ending;
  const bool stays = mantissa == 0 || exponent == greatest;
  return static_cast<Bits>(stays ? bits : result);
}

// The elements of a pair lie on a circle of all, as far before `turn` as behind it. Each is in one
// pair; of an odd number one is in none.
KERNEL_FOUNDRY_BOTH U64 behind(U64 turn, U64 pair, U64 count) {
  const U64 place = turn + pair;
  return place >= count ? place - count : place;
}
KERNEL_FOUNDRY_BOTH U64 before(U64 turn, U64 pair, U64 count) {
  return turn > pair ? turn - 1 - pair : turn + count - 1 - pair;
}

// Two elements change places, or not. Twice is not at all.
template <typename Bits>
KERNEL_FOUNDRY_BOTH void exchange(Bits& a, Bits& b, U32 chance) {
  const Bits difference = static_cast<Bits>((a ^ b) & (Bits{0} - static_cast<Bits>(chance & 1)));
  a = static_cast<Bits>(a ^ difference);
  b = static_cast<Bits>(b ^ difference);
}

}  // namespace redraw

// Which share of a tensor's exponents move in a call, in units of 2^-32: 0.1 to 0.9 of them, so
// that no mean or norm of a whole tensor is what it was.
KERNEL_FOUNDRY_BOTH unsigned int redraw_share(unsigned long long key, unsigned int index,
                                              unsigned int tensor) {
  unsigned int word[4];
  redraw::random_block(word, ~0ull, index, tensor, key);
  return 429496730u + static_cast<unsigned int>((word[0] * 3435973836ull) >> 32);
}

// Where the circle of a tensor's elements is turned in a call.
KERNEL_FOUNDRY_BOTH unsigned long long redraw_turn(unsigned long long key, unsigned int index,
                                                   unsigned long long count) {
  unsigned int word[4];
  redraw::random_block(word, ~0ull, index, redraw::order_tensor, key);
  return count == 0 ? 0 : (word[1] * (1ull << 32) | word[0]) % count;
}

#ifdef __CUDACC_RTC__

namespace redraw {

template <typename Bits>
union Block {
  enum : U32 { count = block_bytes / sizeof(Bits) };
  U32 word[4];
  Bits at[count];
  uint4 whole;
  __device__ Block() {}
};

// A pass has two steps: 0 takes back, 1 makes the change.
__device__ U32 index_of(const RedrawPass& pass, U32 step) {
  return step == 0 ? pass.undo_index : pass.apply_index;
}
__device__ U32 share_of(const RedrawPass& pass, U32 step) {
  return step == 0 ? pass.undo_share : pass.apply_share;
}

template <typename Bits>
__device__ void redraw_block(U8* data, U64 block, const RedrawPass& pass) {
  uint4* at = reinterpret_cast<uint4*>(data) + block;
  Block<Bits> elements, random;
  elements.whole = *at;
#pragma unroll 1
  for (U32 step = 0; step < 2; ++step) {
    const U32 index = index_of(pass, step), share = share_of(pass, step);
    if (index == 0) continue;
    random_block(random.word, block, index, pass.tensor, pass.key);
#pragma unroll
    for (U32 i = 0; i < Block<Bits>::count; ++i) {
      elements.at[i] =
          changed<Bits>(elements.at[i], random.at[i], pass.mantissa_bits, share, step == 0);
    }
  }
  *at = elements.whole;
}

// What lies in no whole block: the end of a tensor, or all of one that is not aligned.
template <typename Bits>
__device__ void redraw_element(U8* data, U64 i, const RedrawPass& pass) {
  Bits* at = reinterpret_cast<Bits*>(data) + i;
  const U64 first_bit = 8 * sizeof(Bits) * (i % Block<Bits>::count);
  Bits element = *at;
#pragma unroll 1
  for (U32 step = 0; step < 2; ++step) {
    const U32 index = index_of(pass, step);
    if (index == 0) continue;
    U32 word[4];
    random_block(word, i / Block<Bits>::count, index, pass.tensor, pass.key);
    const U64 low = word[1] * (1ull << 32) | word[0], high = word[3] * (1ull << 32) | word[2];
    const Bits random = static_cast<Bits>((first_bit < 64 ? low : high) >> (first_bit % 64));
    element = changed<Bits>(element, random, pass.mantissa_bits, share_of(pass, step), step == 0);
  }
  *at = element;
}

template <typename Bits>
__device__ void redraw_all(U8* data, const RedrawPass& pass) {
  const bool is_aligned = reinterpret_cast<U64>(data) % block_bytes == 0;
  const U64 blocks = is_aligned ? pass.size_bytes / block_bytes : 0;
  const U64 threads = static_cast<U64>(gridDim.x) * blockDim.x;
  const U64 thread = static_cast<U64>(blockIdx.x) * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (U64 block = thread; block < blocks; block += threads) redraw_block<Bits>(data, block, pass);
#pragma unroll 1
  for (U64 i = blocks * Block<Bits>::count + thread; i < pass.size_bytes / sizeof(Bits);
       i += threads) {
    redraw_element<Bits>(data, i, pass);
  }
}

// One call's change of places, which takes itself back.
__device__ void reorder(U8* data, const RedrawPass& pass) {
  const U64 count = pass.size_bytes / pass.element_bytes, turn = pass.apply_turn;
  const U64 threads = static_cast<U64>(gridDim.x) * blockDim.x;
  const U64 thread = static_cast<U64>(blockIdx.x) * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (U64 pair = thread; pair < count / 2; pair += threads) {
    U32 word[4];
    random_block(word, pair / block_pairs, pass.apply_index, order_tensor, pass.key);
    const U32 at = pair / 32 % 4;
    const U32 chance =
        (at < 2 ? (at == 0 ? word[0] : word[1]) : (at == 2 ? word[2] : word[3])) >> (pair % 32);
    U8* a = data + pass.element_bytes * behind(turn, pair, count);
    U8* b = data + pass.element_bytes * before(turn, pair, count);
    switch (pass.element_bytes) {
    case 1: exchange(*a, *b, chance); break;
    case 2: exchange(*reinterpret_cast<U16*>(a), *reinterpret_cast<U16*>(b), chance); break;
    case 4: exchange(*reinterpret_cast<U32*>(a), *reinterpret_cast<U32*>(b), chance); break;
    default: exchange(*reinterpret_cast<U64*>(a), *reinterpret_cast<U64*>(b), chance);
    }
  }
}

__device__ void mask(U8* data, U64 size_bytes, U32 number, U64 key) {
  const bool is_aligned = reinterpret_cast<U64>(data) % block_bytes == 0;
  const U64 blocks = is_aligned ? size_bytes / block_bytes : 0;
  const U64 threads = static_cast<U64>(gridDim.x) * blockDim.x;
  const U64 thread = static_cast<U64>(blockIdx.x) * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (U64 block = thread; block < blocks; block += threads) {
    U32 word[4];
    random_block(word, block, 0, number, key);
    uint4* at = reinterpret_cast<uint4*>(data) + block;
    uint4 whole = *at;
    whole.x ^= word[0];
    whole.y ^= word[1];
    whole.z ^= word[2];
    whole.w ^= word[3];
    *at = whole;
  }
#pragma unroll 1
  for (U64 i = blocks * block_bytes + thread; i < size_bytes; i += threads) {
    U32 word[4];
    random_block(word, i / block_bytes, 0, number, key);
    const U32 at = i / 4 % 4;
    const U32 bits = at < 2 ? (at == 0 ? word[0] : word[1]) : (at == 2 ? word[2] : word[3]);
    data[i] ^= static_cast<U8>(bits >> (8 * (i % 4)));
  }
}

}  // namespace redraw

// Random bits over every range; the same once more takes them off.
extern "C" __global__ void __launch_bounds__(256) mask_ranges(const MaskedRanges ranges) {
  const auto& range = ranges.all[blockIdx.y];
  redraw::mask(reinterpret_cast<unsigned char*>(range.address), range.size_bytes,
               ranges.first + blockIdx.y, ranges.key);
}

extern "C" __global__ void __launch_bounds__(256)
    redraw_tensor(unsigned char* data, RedrawPass pass) {
  if (pass.mantissa_bits == 0) {
    redraw::reorder(data, pass);
    return;
  }
  switch (pass.element_bytes) {
  case 1: redraw::redraw_all<redraw::U8>(data, pass); break;
  case 2: redraw::redraw_all<redraw::U16>(data, pass); break;
  case 4: redraw::redraw_all<redraw::U32>(data, pass); break;
  default: redraw::redraw_all<redraw::U64>(data, pass); break;
  }
}

#endif

}  // namespace kernel_foundry
