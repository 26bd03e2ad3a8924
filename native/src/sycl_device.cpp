#include "sycl_device.hpp"

#include <limits>
#include <optional>
#include <sycl/sycl.hpp>

#include "error.hpp"
#include "host_device.hpp"
#include "sycl_arguments.hpp"
#include "sycl_find.hpp"
#include "thread_stacks.hpp"

namespace kernel_foundry {
namespace {

namespace syclexp = sycl::ext::oneapi::experimental;
using ExecutableBundle = sycl::kernel_bundle<sycl::bundle_state::executable>;

// In the SPIR-V a free-function kernel `name` carries this prefix.
std::string spirv_name(const std::string& kernel) { return "__sycl_kernel_" + kernel; }

class SyclProgram final : public Program {
 public:
  SyclProgram(std::vector<std::string> names, ExecutableBundle bundle) : names_(std::move(names)) {
    for (const std::string& name : names_) {
      kernels_.push_back(bundle.ext_oneapi_get_kernel(spirv_name(name)));
    }
  }

  [[nodiscard]] const std::vector<std::string>& kernel_names() const noexcept override {
    return names_;
  }

  [[nodiscard]] const sycl::kernel& kernel(const std::string& name) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return kernels_[i];
    }
    throw LaunchError("the program has no kernel called " + name);
  }

 private:
  std::vector<std::string> names_;
  std::vector<sycl::kernel> kernels_;
};

// SYCL counts dimensions with the fastest last; grid and block come with x first.
template <int N>
sycl::nd_range<N> range_of(const Launch& launch) {
  sycl::range<N> global, local;
  for (int d = 0; d < N; ++d) {
    const auto from = static_cast<std::size_t>(N - 1 - d);
    local[d] = launch.block[from];
    global[d] = launch.grid[from] * launch.block[from];
  }
  return {global, local};
}

class SyclDevice final : public HostDevice {
 public:
  explicit SyclDevice(const sycl::device& device)
      : queue_(std::make_unique<sycl::queue>(
            device, sycl::property_list{sycl::property::queue::in_order(),
                                        sycl::property::queue::enable_profiling()})) {
    remember_stack_top();
    namespace info = sycl::info::device;
    facts_.name = device.get_info<info::name>();
    facts_.vendor = device.get_info<info::vendor>();
    facts_.architecture = architecture_of(device);
    facts_.driver_version = device.get_info<info::driver_version>();
    facts_.compute_units = device.get_info<info::max_compute_units>();
    facts_.sub_group_sizes = device.get_info<info::sub_group_sizes>();
    facts_.max_block = device.get_info<info::max_work_group_size>();
    facts_.shared_bytes = device.get_info<info::local_mem_size>();
    facts_.memory_bytes = device.get_info<info::global_mem_size>();
    facts_.cache_bytes =
        device.is_cpu() ? last_level_cache_bytes() : device.get_info<info::global_mem_cache_size>();
  }

  [[nodiscard]] const DeviceFacts& facts() const noexcept override { return facts_; }

  [[nodiscard]] std::shared_ptr<Program> load(const std::string& code,
                                              const std::vector<std::string>& kernels) override {
    try {
      const auto* bytes = reinterpret_cast<const std::byte*>(code.data());
      auto object = syclexp::create_kernel_bundle_from_source(
          queue().get_context(), syclexp::source_language::spirv,
          std::vector<std::byte>(bytes, bytes + code.size()));
      return std::make_shared<SyclProgram>(kernels, syclexp::build(object));
    } catch (const sycl::exception& error) {
      throw LoadError(error.what());
    }
  }

  void enqueue(const Launch& launch, const std::vector<std::uintptr_t>& addresses) override {
    const auto& kernel = dynamic_cast<const SyclProgram&>(*launch.program).kernel(launch.kernel);
    guarded([&] {
      note(queue().submit([&](sycl::handler& handler) {
        set_arguments(handler, launch, addresses);
        switch (launch.dimensions) {
        case 1: handler.parallel_for(range_of<1>(launch), kernel); break;
        case 2: handler.parallel_for(range_of<2>(launch), kernel); break;
        default: handler.parallel_for(range_of<3>(launch), kernel); break;
        }
      }));
    });
  }

  void clear(std::uintptr_t address, std::size_t size_bytes) override {
    guarded([&] { queue().memset(reinterpret_cast<void*>(address), 0, size_bytes); });
  }

  void wait() override {
    is_new_span_ = true;
    guarded([&] { queue().wait_and_throw(); });
  }

  [[nodiscard]] double span_ns() override {
    if (!first_) return std::numeric_limits<double>::quiet_NaN();
    namespace profiling = sycl::info::event_profiling;
    const auto start = first_->get_profiling_info<profiling::command_start>();
    const auto end = last_->get_profiling_info<profiling::command_end>();
    return static_cast<double>(end - start);
  }

  void scrub() override {
    wait();
    clear_dead_stacks();  // local memory of work-groups lies there, too
  }

  void release() noexcept override {
    first_.reset();
    last_.reset();
    queue_.reset();
  }

 private:
  [[nodiscard]] sycl::queue& queue() const {
    if (!queue_) throw DriverError("the device has been released");
    return *queue_;
  }

  template <typename Work>
  void guarded(const Work& work) {
    try {
      work();
    } catch (const sycl::exception& error) {
      throw LaunchError(error.what());
    }
  }

  void note(sycl::event event) {
    if (is_new_span_) first_ = event;
    is_new_span_ = false;
    last_ = std::move(event);
  }

  DeviceFacts facts_;
  std::unique_ptr<sycl::queue> queue_;  // a pointer: `release` must end it before the process does
  std::optional<sycl::event> first_, last_;
  bool is_new_span_ = true;
};

}  // namespace

std::shared_ptr<Device> open_sycl_device(std::size_t index) {
  return with_driver([&] { return std::make_shared<SyclDevice>(usable_device(index)); });
}

}  // namespace kernel_foundry
