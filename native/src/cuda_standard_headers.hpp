// The few standard headers that device code asks for. NVRTC has none; numbers of fixed width and
// the math functions are there without one.
#pragma once

#include <array>

namespace kernel_foundry::nvrtc {

struct Header {
  const char* name;
  const char* text;
};

inline constexpr const char* float_limits = R"(#pragma once
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-7f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#endif
)";

inline constexpr const char* integer_limits = R"(#pragma once
#if __has_include(<cuda/std/climits>)
#include <cuda/std/climits>
#else
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#define LONG_MIN (-9223372036854775807l - 1)
#define LONG_MAX 9223372036854775807l
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MIN (-9223372036854775807ll - 1)
#define LLONG_MAX 9223372036854775807ll
#define ULLONG_MAX 18446744073709551615ull
#endif
)";

inline constexpr const char* numeric_limits = R"(#pragma once
#include <cuda/std/limits>
namespace std { using cuda::std::numeric_limits; }
)";

inline constexpr const char* type_traits = R"(#pragma once
#include <cuda/std/type_traits>
namespace std { using namespace cuda::std; }
)";

// The whole of cub starts kernels from host code; this is the part for device code.
inline constexpr const char* cub_of_blocks = R"(#pragma once
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/thread/thread_operators.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
)";

inline constexpr const char* nothing = "#pragma once\n";

inline constexpr std::array standard_headers = {
    Header{"cub/cub.cuh", cub_of_blocks},
    Header{"cfloat", float_limits},
    Header{"float.h", float_limits},
    Header{"climits", integer_limits},
    Header{"limits.h", integer_limits},
    Header{"limits", numeric_limits},
    Header{"type_traits", type_traits},
    Header{"cmath", nothing},
    Header{"math.h", nothing},
    Header{"cstddef", nothing},
    Header{"stddef.h", nothing},
    Header{"cstdint", nothing},
    Header{"stdint.h", nothing},
    Header{"cstdio", nothing},
    Header{"stdio.h", nothing},
    Header{"cassert", nothing},
    Header{"assert.h", nothing},
    Header{"cstdlib", nothing},
    Header{"stdlib.h", nothing},
    Header{"cstring", nothing},
    Header{"string.h", nothing},
};

}  // namespace kernel_foundry::nvrtc
