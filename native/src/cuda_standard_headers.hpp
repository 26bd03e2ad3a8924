// The standard headers that device code may include. NVRTC has none; numbers of fixed width and the
// math functions are there without one, the rest is libcu++'s.
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

// The compiler's own, which are there without a header: at no cost, unlike libcu++'s.
inline constexpr const char* mathematics = R"(#pragma once
namespace std {
using ::abs; using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atan2;
using ::atanh; using ::cbrt; using ::ceil; using ::copysign; using ::cos; using ::cosh; using ::erf;
using ::erfc; using ::exp; using ::exp2; using ::expm1; using ::fabs; using ::fdim; using ::floor;
using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::frexp; using ::hypot; using ::ilogb;
using ::isfinite; using ::isinf; using ::isnan; using ::ldexp; using ::lgamma; using ::llrint;
using ::llround; using ::log; using ::log10; using ::log1p; using ::log2; using ::logb; using ::lrint;
using ::lround; using ::modf; using ::nearbyint; using ::nextafter; using ::pow; using ::remainder;
using ::remquo; using ::rint; using ::round; using ::scalbln; using ::scalbn; using ::signbit;
using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::tgamma; using ::trunc;
}
)";

inline constexpr const char* integers = R"(#pragma once
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::intptr_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t;
}
)";

inline constexpr const char* sizes = R"(#pragma once
namespace std { using ::size_t; using ::ptrdiff_t; using nullptr_t = decltype(nullptr); }
)";

#define KERNEL_FOUNDRY_OF_LIBCUXX(name)                                                            \
  Header{#name, "#pragma once\n#include <cuda/std/" #name ">\n"                                    \
                "namespace std { using namespace cuda::std; }\n"}

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
    KERNEL_FOUNDRY_OF_LIBCUXX(algorithm),
    KERNEL_FOUNDRY_OF_LIBCUXX(array),
    KERNEL_FOUNDRY_OF_LIBCUXX(bit),
    KERNEL_FOUNDRY_OF_LIBCUXX(complex),
    KERNEL_FOUNDRY_OF_LIBCUXX(concepts),
    KERNEL_FOUNDRY_OF_LIBCUXX(functional),
    KERNEL_FOUNDRY_OF_LIBCUXX(initializer_list),
    KERNEL_FOUNDRY_OF_LIBCUXX(iterator),
    KERNEL_FOUNDRY_OF_LIBCUXX(limits),
    KERNEL_FOUNDRY_OF_LIBCUXX(numbers),
    KERNEL_FOUNDRY_OF_LIBCUXX(numeric),
    KERNEL_FOUNDRY_OF_LIBCUXX(optional),
    KERNEL_FOUNDRY_OF_LIBCUXX(ratio),
    KERNEL_FOUNDRY_OF_LIBCUXX(span),
    KERNEL_FOUNDRY_OF_LIBCUXX(tuple),
    KERNEL_FOUNDRY_OF_LIBCUXX(type_traits),
    KERNEL_FOUNDRY_OF_LIBCUXX(utility),
    KERNEL_FOUNDRY_OF_LIBCUXX(variant),
    Header{"cmath", mathematics},
    Header{"math.h", nothing},
    Header{"cstddef", sizes},
    Header{"stddef.h", nothing},
    Header{"cstdint", integers},
    Header{"stdint.h", nothing},
    Header{"new", nothing},  // placement new is there
    Header{"cstdio", nothing},
    Header{"stdio.h", nothing},
    Header{"cassert", nothing},
    Header{"assert.h", nothing},
    Header{"cstdlib", nothing},
    Header{"stdlib.h", nothing},
    Header{"cstring", nothing},
    Header{"string.h", nothing},
};

#undef KERNEL_FOUNDRY_OF_LIBCUXX

}  // namespace kernel_foundry::nvrtc
