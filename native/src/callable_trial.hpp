// A host function as something to measure. It owns its outputs: none are poisoned or kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "device.hpp"
#include "input_redraw.hpp"
#include "measure.hpp"
#include "timed_call.hpp"

namespace kernel_foundry {

class CallableTrial final : public Trial {
 public:
  // `call` works on the host, or enqueues on the stream of `device`.
  CallableTrial(std::shared_ptr<Device> device, std::function<void(std::size_t)> call,
                std::size_t flush_bytes, RedrawPlan redraw)
      : device_(std::move(device)), call_(std::move(call)), flush_bytes_(flush_bytes),
        inputs_(*device_, std::move(redraw)) {}

  void redraw(std::size_t set, std::uint32_t index) override {
    if (inputs_.is_empty()) return;
    inputs_.apply(set, index);
    device_->wait();  // as it is for a candidate
  }
  void restore() override {
    inputs_.restore();
    device_->wait();
  }

  void poison(std::size_t) override {}
  void flush() override {
    if (flush_bytes_ > 0) device_->flush(flush_bytes_);
  }
  [[nodiscard]] CallTime call(std::size_t set) override {
    // Never held: a library may wait.
    return timed_call(*device_, false, [&] { call_(set); });
  }
  void keep(std::size_t, std::size_t) override {}
  [[nodiscard]] bool times_by_events() const noexcept override {
    return device_->times_by_events();
  }
  [[nodiscard]] Clocks* clocks() noexcept override { return device_->clocks(); }

 private:
  std::shared_ptr<Device> device_;
  std::function<void(std::size_t)> call_;
  std::size_t flush_bytes_;
  InputRedraw inputs_;
};

}  // namespace kernel_foundry
