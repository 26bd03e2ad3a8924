#include "call_draws.hpp"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "error.hpp"

namespace kernel_foundry {
namespace {

constexpr double guests_of_a_stretch = 0.75;  // about 1 / ln 4: stretches grow fourfold

}  // namespace

std::size_t next_set(std::uint32_t drawn, std::size_t last, std::size_t set_count) {
  return set_count == 1 ? 0 : (last + 1 + drawn % (set_count - 1)) % set_count;
}

bool is_guest(std::uint32_t drawn, std::size_t call) {
  return call > 0 && drawn < guests_of_a_stretch / static_cast<double>(call) * 0x1p32;
}

std::optional<std::size_t> keep_slot(std::uint32_t drawn, std::size_t keep_count,
                                     std::size_t call) {
  if (call < keep_count) return call;
  const std::size_t slot = drawn % (call + 1);
  return slot < keep_count ? std::optional(slot) : std::nullopt;
}

CallDraws::CallDraws(int descriptor) : descriptor_(descriptor) {
  if (descriptor < 0) return;
  struct stat facts{};
  if (fstat(descriptor, &facts) == 0) {
    count_ = static_cast<std::size_t>(facts.st_size) / sizeof(CallDraw);
  }
  if (count_ == 0) throw std::invalid_argument("the file of draws is empty");
}

void CallDraws::read(std::size_t call, CallDraw& draw) const {
  const auto done = descriptor_ < 0 ? getrandom(&draw, sizeof draw, 0)
                                    : pread(descriptor_, &draw, sizeof draw,
                                            static_cast<off_t>(call % count_ * sizeof draw));
  if (done != static_cast<ssize_t>(sizeof draw)) {
    throw DriverError("cannot read the random numbers of a timed call");
  }
}

KnownCallDraws::KnownCallDraws(std::string bytes) : bytes_(std::move(bytes)) {
  if (bytes_.size() < sizeof(CallDraw)) throw std::invalid_argument("there are no draws");
}

CallDraw KnownCallDraws::at(std::size_t call) const {
  CallDraw draw;
  const std::size_t count = bytes_.size() / sizeof draw;
  std::memcpy(&draw, bytes_.data() + call % count * sizeof draw, sizeof draw);
  return draw;
}

}  // namespace kernel_foundry
