// The layouts of a product's operands.
#pragma once

namespace kf {

// How an operand lies in memory. A: MK or KM. B: NK (as the weight of a linear layer) or KN. The
// last letter is contiguous, and its size a multiple of 16 bytes. KM and KN are for 16 bits alone:
// kf/transpose.hpp turns others.
enum class Layout { MK, KM, NK, KN };

}  // namespace kf
