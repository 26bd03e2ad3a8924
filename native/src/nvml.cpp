#include "nvml.hpp"

#include <utility>

#include "dynamic_library.hpp"
#include "error.hpp"

namespace kernel_foundry {
namespace {

// The part of NVML's interface that is used, declared by hand: no header is needed to build.
using Result = int;
using Handle = void*;
constexpr Result success = 0;
enum ClockType : int { graphics = 0, compute = 1, memory = 2 };

enum Reason : unsigned long long {
  gpu_idle = 0x1,
  application_clocks = 0x2,
  software_power_cap = 0x4,
  hardware_slowdown = 0x8,
  sync_boost = 0x10,
  software_thermal = 0x20,
  hardware_thermal = 0x40,
  power_brake = 0x80,
  display_clocks = 0x100,
};

constexpr std::pair<Reason, const char*> reason_names[] = {
    {gpu_idle, "gpu_idle"},
    {application_clocks, "application_clocks"},
    {software_power_cap, "sw_power_cap"},
    {hardware_slowdown, "hw_slowdown"},
    {sync_boost, "sync_boost"},
    {software_thermal, "sw_thermal_slowdown"},
    {hardware_thermal, "hw_thermal_slowdown"},
    {power_brake, "hw_power_brake"},
    {display_clocks, "display_clocks"},
};

constexpr unsigned long long throttles =
    hardware_slowdown | software_thermal | hardware_thermal | power_brake;

// Below this share of its maximum a clock shows the state of the machine, not of the kernel.
// Source: NVBench's default.
constexpr double least_share_of_clock = 0.75;

struct Nvml {
  Result (*init)() = nullptr;
  Result (*handle_by_uuid)(const char*, Handle*) = nullptr;
  Result (*clock)(Handle, ClockType, unsigned*) = nullptr;
  Result (*max_clock)(Handle, ClockType, unsigned*) = nullptr;
  Result (*reasons)(Handle, unsigned long long*) = nullptr;  // optional
};

template <typename Function>
bool find(const DynamicLibrary& library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(library.find(name));
  return function != nullptr;
}

std::optional<Nvml> load() {
  try {
    const DynamicLibrary library = DynamicLibrary::open(library_names(
        "KERNEL_FOUNDRY_NVML", {"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
                                "/usr/lib/wsl/lib/libnvidia-ml.so.1"}));
    Nvml table;
    const bool is_whole = find(library, "nvmlInit_v2", table.init) &&
                          find(library, "nvmlDeviceGetHandleByUUID", table.handle_by_uuid) &&
                          find(library, "nvmlDeviceGetClockInfo", table.clock) &&
                          find(library, "nvmlDeviceGetMaxClockInfo", table.max_clock);
    if (!is_whole || table.init() != success) return std::nullopt;
    // Renamed in driver 535.
    if (!find(library, "nvmlDeviceGetCurrentClocksEventReasons", table.reasons)) {
      find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", table.reasons);
    }
    return table;
  } catch (const NativeError&) {
    return std::nullopt;  // whoever wants the clocks gets none
  }
}

// Loaded once and never unloaded; null where it is not there.
const Nvml* nvml() {
  static const std::optional<Nvml> loaded = load();
  return loaded ? &*loaded : nullptr;
}

class NvmlClocks final : public Clocks {
 public:
  NvmlClocks(const Nvml& nvml, Handle handle) : nvml_(nvml), handle_(handle) {
    if (nvml_.max_clock(handle_, compute, &max_compute_mhz_) != success) max_compute_mhz_ = 0;
  }

  [[nodiscard]] std::optional<ClockReading> read() noexcept override {
    ClockReading reading;
    reading.max_compute_mhz = max_compute_mhz_;
    unsigned long long reasons = 0;
    if (nvml_.clock(handle_, compute, &reading.compute_mhz) != success ||
        nvml_.clock(handle_, memory, &reading.memory_mhz) != success) {
      return std::nullopt;
    }
    if (nvml_.reasons != nullptr && nvml_.reasons(handle_, &reasons) != success) reasons = 0;
    for (const auto& [bit, name] : reason_names) {
      if ((reasons & bit) != 0) reading.reasons.emplace_back(name);
    }
    // Clocks that somebody has set are low on purpose.
    const bool is_slow = (reasons & application_clocks) == 0 &&
                         reading.compute_mhz < least_share_of_clock * max_compute_mhz_;
    reading.is_throttled = (reasons & throttles) != 0 || is_slow;
    return reading;
  }

 private:
  const Nvml& nvml_;
  Handle handle_;
  unsigned max_compute_mhz_ = 0;
};

}  // namespace

std::unique_ptr<Clocks> open_nvml_clocks(const std::string& uuid) {
  const Nvml* loaded = nvml();
  Handle handle = nullptr;
  if (loaded == nullptr || loaded->handle_by_uuid(uuid.c_str(), &handle) != success) {
    return nullptr;
  }
  auto clocks = std::make_unique<NvmlClocks>(*loaded, handle);
  // The first answers take milliseconds, and the process may not open files later.
  if (!clocks->read()) return nullptr;
  return clocks;
}

}  // namespace kernel_foundry
