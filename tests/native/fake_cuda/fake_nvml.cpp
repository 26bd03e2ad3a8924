// NVIDIA's management library for the fake device. It calls itself throttled by heat for a number
// of readings after the first: FAKE_NVML_THROTTLED_READINGS.
#include <cstdlib>

namespace {

constexpr int success = 0;
constexpr unsigned clock_of_memory = 2;
constexpr unsigned long long gpu_idle = 0x1;
constexpr unsigned long long hardware_thermal = 0x40;
int device;
long readings = 0;

long throttled_readings() {
  const char* text = std::getenv("FAKE_NVML_THROTTLED_READINGS");
  return text == nullptr ? 0 : std::atol(text);
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return success; }
int nvmlDeviceGetHandleByUUID(const char*, void** handle) { return *handle = &device, success; }
int nvmlDeviceGetClockInfo(void*, unsigned clock, unsigned* mhz) {
  return *mhz = clock == clock_of_memory ? 3201 : 1965, success;
}
int nvmlDeviceGetMaxClockInfo(void*, unsigned, unsigned* mhz) { return *mhz = 1980, success; }
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) {
  const long reading = readings++;
  const bool is_throttled = reading > 0 && reading <= throttled_readings();
  return *reasons = is_throttled ? hardware_thermal : gpu_idle, success;
}

}  // extern "C"
