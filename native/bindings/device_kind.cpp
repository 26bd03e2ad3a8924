#include "device_kind.hpp"

#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "byte_ranges.hpp"
#include "compiler.hpp"
#include "errors.hpp"
#include "launches.hpp"
#include "measurement.hpp"
#include "redraw_tensor.hpp"
#include "watched_zones.hpp"

namespace py = pybind11;

namespace kernel_foundry {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

std::vector<std::tuple<std::string, std::size_t, std::size_t, std::size_t, std::size_t>>
resources_of(const Program& program) {
  std::vector<std::tuple<std::string, std::size_t, std::size_t, std::size_t, std::size_t>> rows;
  for (const KernelResources& r : program.resources()) {
    rows.emplace_back(r.name, r.registers, r.shared_bytes, r.local_bytes, r.max_block);
  }
  return rows;
}

void bind_loaded(py::module_& m) {
  py::classh<Program>(m, "Program", py::module_local(), "Kernels loaded on a device.")
      .def_property_readonly("kernel_names", &Program::kernel_names)
      .def_property_readonly("resources", &resources_of);

  py::classh<Buffer>(m, "Buffer", py::module_local(), "Memory of the device.")
      .def_property_readonly("address", &Buffer::address)
      .def_property_readonly("size_bytes", &Buffer::size_bytes);

  py::classh<SharedMemory>(m, "SharedMemory", py::module_local(),
                           "Device memory that another process opens by its handle.")
      .def_property_readonly("address", &SharedMemory::address)
      .def_property_readonly("size_bytes", &SharedMemory::size_bytes)
      .def_property_readonly("handle",
                             [](const SharedMemory& memory) { return py::bytes(memory.handle()); })
      .def("close", &SharedMemory::close, Unlocked(), "Give it back; idempotent.");
}

std::optional<std::array<std::size_t, 4>> unit_limits_of(const Device& device) {
  const auto& limits = device.facts().unit_limits;
  if (!limits) return std::nullopt;
  return std::array{limits->registers, limits->shared_bytes, limits->work_items, limits->groups};
}

// Python's `fill` and `copy` are complete when they return, whatever the device queues.
void fill_and_wait(Device& device, std::uintptr_t address, std::size_t size_bytes,
                   unsigned char byte) {
  device.fill(address, size_bytes, byte);
  device.wait();
}

void copy_and_wait(Device& device, std::uintptr_t to, std::uintptr_t from, std::size_t size_bytes) {
  device.copy(to, from, size_bytes);
  device.wait();
}

void redraw_and_wait(Device& device, std::uintptr_t address, std::string dtype,
                     std::size_t size_bytes, std::uint64_t key, std::uint32_t number,
                     std::uint32_t undo_index, std::uint32_t apply_index) {
  device.redraw(address,
                redraw_pass({std::move(dtype), size_bytes, number}, key, undo_index, apply_index));
  device.wait();
}

Comparison compare_outputs(Device& device, std::uintptr_t actual, std::uintptr_t expected,
                           std::string dtype, std::size_t count, double rtol, double atol,
                           std::uintptr_t scale, std::size_t groups, std::size_t inner) {
  return device.compare(actual, expected,
                        {std::move(dtype), count, rtol, atol, scale, groups, inner});
}

void bind_device_memory(py::classh<Device>& device) {
  device.def("allocate", &Device::allocate, py::arg("size_bytes"), Unlocked())
      .def("fill", &fill_and_wait, py::arg("address"), py::arg("size_bytes"), py::arg("byte"),
           Unlocked())
      .def("copy", &copy_and_wait, py::arg("to"), py::arg("from_"), py::arg("size_bytes"),
           Unlocked(), "Copy between addresses that do not overlap.")
      .def("redraw", &redraw_and_wait, py::arg("address"), py::kw_only(), py::arg("dtype"),
           py::arg("size_bytes"), py::arg("key"), py::arg("number"), py::arg("undo_index") = 0,
           py::arg("apply_index") = 0, Unlocked(),
           "Bring a tensor in place from one call's values to another's; index 0: as drawn.")
      .def(
          "fill_all",
          [](Device& device, const RangeRows& ranges) { device.fill_all(ranges_of(ranges)); },
          py::arg("ranges"), Unlocked(), "Enqueue fills of (address, size_bytes, byte).")
      .def(
          "find_other",
          [](Device& device, const RangeRows& ranges) {
            return device.find_other(ranges_of(ranges));
          },
          py::arg("ranges"), Unlocked(),
          "Wait; index of a range of (address, size_bytes, byte) with another byte, or None.")
      .def("scrub", &Device::scrub, Unlocked(),
           "Enqueue what overwrites the processors' own memory.")
      .def("create_shared", &Device::create_shared, py::arg("size_bytes"), Unlocked())
      .def(
          "open_shared",
          [](Device& device, const py::bytes& handle, std::size_t size_bytes) {
            const std::string bytes = handle;
            const py::gil_scoped_release unlocked;
            return device.open_shared(bytes, size_bytes);
          },
          py::arg("handle"), py::arg("size_bytes"))
      .def("compare", &compare_outputs, py::kw_only(), py::arg("actual"), py::arg("expected"),
           py::arg("dtype"), py::arg("count"), py::arg("rtol"), py::arg("atol"),
           py::arg("scale") = 0, py::arg("groups") = 1, py::arg("inner") = 1, Unlocked(),
           "Compare every element; `scale` is the address of `groups` float32 values or 0.")
      .def("same_bytes", &Device::same_bytes, py::arg("a"), py::arg("b"), py::arg("size_bytes"),
           Unlocked());
}

using ZoneRows = std::vector<std::tuple<std::uintptr_t, std::size_t, bool, std::string>>;

std::unique_ptr<WatchedZones> watch(const ZoneRows& rows) {
  std::vector<Zone> zones;
  zones.reserve(rows.size());
  for (const auto& [address, size_bytes, is_readable, name] : rows) {
    zones.push_back({address, size_bytes, is_readable, name});
  }
  return std::make_unique<WatchedZones>(std::move(zones));
}

// Of this module: another kind's knows nothing of its zones.
void bind_watched_zones(py::module_& m, py::classh<Device>& device) {
  py::classh<WatchedZones>(m, "WatchedZones", py::module_local(),
                           "Pages that kernels must not write, or not touch, while it is open.")
      .def("close", &WatchedZones::close, "Open all of them for good; idempotent.");
  py::classh<Trespass>(m, "Trespass", py::module_local(), "An access that a zone forbids.")
      .def_readonly("name", &Trespass::name)
      .def_readonly("is_readable", &Trespass::is_readable)
      .def_readonly("is_write", &Trespass::is_write)
      .def_readonly("is_hidden", &Trespass::is_hidden);
  device
      .def(
          "watch", [](Device&, const ZoneRows& rows) { return watch(rows); }, py::arg("zones"),
          "Close host pages to kernels: (address, size_bytes, is_readable, name of a tensor).")
      .def_property_readonly(
          "first_trespass", [](Device&) { return first_trespass(); },
          "What kernels did first in any zone, or None.");
}

using CoverRows = std::vector<std::tuple<std::uintptr_t, std::size_t, bool, std::string>>;

std::unique_ptr<Cover> cover_of(Device& device, const CoverRows& rows) {
  std::vector<CoveredRange> ranges;
  ranges.reserve(rows.size());
  for (const auto& [address, size_bytes, is_read_only, name] : rows) {
    ranges.push_back({address, size_bytes, is_read_only, name});
  }
  return device.cover(std::move(ranges));
}

void bind_covers(py::module_& m, py::classh<Device>& device) {
  py::classh<Cover>(m, "Cover", py::module_local(), "Memory that kernels cannot see for a while.")
      .def("hide", &Cover::hide, Unlocked())
      .def("show", &Cover::show, Unlocked(), "All is as it was; idempotent.");
  device.def("cover", &cover_of, py::arg("ranges"), py::keep_alive<0, 1>(),
             "A cover of (address, size_bytes, is_read_only, name of a tensor), each alone in its "
             "pages.");
}

void bind_device(py::module_& m) {
  auto fact = [](auto member) {
    return [member](const Device& device) { return device.facts().*member; };
  };
  py::classh<Device> device(m, "Device", py::module_local(), "An open device.");
  device.def_property_readonly("name", fact(&DeviceFacts::name))
      .def_property_readonly("vendor", fact(&DeviceFacts::vendor))
      .def_property_readonly("architecture", fact(&DeviceFacts::architecture))
      .def_property_readonly("driver_version", fact(&DeviceFacts::driver_version))
      .def_property_readonly("compute_units", fact(&DeviceFacts::compute_units))
      .def_property_readonly("sub_group_sizes", fact(&DeviceFacts::sub_group_sizes))
      .def_property_readonly("max_block", fact(&DeviceFacts::max_block))
      .def_property_readonly("shared_bytes", fact(&DeviceFacts::shared_bytes))
      .def_property_readonly("memory_bytes", fact(&DeviceFacts::memory_bytes))
      .def_property_readonly("cache_bytes", fact(&DeviceFacts::cache_bytes))
      .def_property_readonly("unit_limits", &unit_limits_of)
      .def_property_readonly("uuid", fact(&DeviceFacts::uuid))
      .def_property_readonly("stream", &Device::stream)
      .def_property_readonly("is_host_memory", &Device::is_host_memory)
      .def_property_readonly("unit_bytes", &Device::unit_bytes)
      .def_property_readonly("times_by_events", &Device::times_by_events)
      .def_property_readonly("event_overhead_ns", &Device::event_overhead_ns)
      .def(
          "load",
          [](Device& device, const py::bytes& code, const std::vector<std::string>& kernels) {
            const std::string text = code;
            const py::gil_scoped_release unlocked;
            return device.load(text, kernels);
          },
          py::kw_only(), py::arg("code"), py::arg("kernels"), "Load built code; raises LoadError.")
      .def("synchronize", &Device::wait, Unlocked(), "Wait; raises LaunchError.")
      .def("release", &Device::release, Unlocked(), "Drop queue and context before exit.");
  bind_device_memory(device);
  bind_watched_zones(m, device);
  bind_covers(m, device);
  bind_measuring(device);
}

}  // namespace

void bind_device_kind(py::module_& m, const KindFunctions& kind) {
  py::module_::import("kernel_foundry_native._core");  // it binds what `compare` returns
  bind_errors();
  bind_measurement(m);
  bind_compiler(m);
  bind_loaded(m);
  bind_device(m);
  bind_launches(m);
  m.def("device_count", kind.count_devices, Unlocked());
  m.def("open_device", kind.open_device, py::arg("index") = 0, Unlocked());
  m.def("open_compiler", kind.open_compiler, py::arg("index") = 0, py::arg("architecture") = "",
        Unlocked());
}

}  // namespace kernel_foundry
