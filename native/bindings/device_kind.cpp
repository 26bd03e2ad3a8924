#include "device_kind.hpp"

#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "launch_sequence.hpp"
#include "measurement.hpp"

// Python holds an argument as it is, instead of one of its alternatives.
PYBIND11_MAKE_OPAQUE(kernel_foundry::Argument)

namespace py = pybind11;

namespace kernel_foundry {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;
using Extent = std::array<std::size_t, 3>;

ScalarArgument scalar_argument(const std::string& type, const py::handle& value) {
  if (py::isinstance<py::float_>(value)) return {type, value.cast<double>()};
  if (value.cast<py::int_>() < py::int_(0)) return {type, value.cast<std::int64_t>()};
  return {type, value.cast<std::uint64_t>()};
}

void bind_arguments(py::module_& m) {
  py::classh<Argument>(m, "Argument", py::module_local(), "One kernel argument.");
  m.def(
      "buffer_argument",
      [](std::size_t index, std::size_t offset_bytes) {
        return Argument(BufferArgument{index, offset_bytes});
      },
      py::arg("index"), py::arg("offset_bytes") = 0, "A bound buffer, by index.");
  m.def(
      "scalar_argument",
      [](const std::string& type, const py::object& value) {
        return Argument(scalar_argument(type, value));
      },
      py::arg("ctype"), py::arg("value"), "A number of a C type such as \"int32\".");
  m.def(
      "local_argument",
      [](std::size_t element_bytes, std::size_t count) {
        return Argument(LocalArgument{element_bytes, count});
      },
      py::arg("element_bytes"), py::arg("count"), "Local memory of a work-group.");
}

void bind_device(py::module_& m) {
  py::classh<ObjectCode>(m, "ObjectCode", py::module_local(), "Built code for any process.")
      .def_property_readonly("code", [](const ObjectCode& o) { return py::bytes(o.code); })
      .def_property_readonly("log",
                             [](const ObjectCode& o) {
                               return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(
                                   o.log.data(), static_cast<Py_ssize_t>(o.log.size()), "replace"));
                             })
      .def_readonly("build_ns", &ObjectCode::build_ns);

  py::classh<Program>(m, "Program", py::module_local(), "Kernels loaded on a device.")
      .def_property_readonly("kernel_names", &Program::kernel_names);

  py::classh<Buffer>(m, "Buffer", py::module_local(), "Memory of the device.")
      .def_property_readonly("address", &Buffer::address)
      .def_property_readonly("size_bytes", &Buffer::size_bytes);

  auto fact = [](auto member) {
    return [member](const Device& device) { return device.facts().*member; };
  };
  py::classh<Device>(m, "Device", py::module_local(), "An open device.")
      .def_property_readonly("name", fact(&DeviceFacts::name))
      .def_property_readonly("vendor", fact(&DeviceFacts::vendor))
      .def_property_readonly("architecture", fact(&DeviceFacts::architecture))
      .def_property_readonly("driver_version", fact(&DeviceFacts::driver_version))
      .def_property_readonly("compiler_version", fact(&DeviceFacts::compiler_version))
      .def_property_readonly("compute_units", fact(&DeviceFacts::compute_units))
      .def_property_readonly("sub_group_sizes", fact(&DeviceFacts::sub_group_sizes))
      .def_property_readonly("max_block", fact(&DeviceFacts::max_block))
      .def_property_readonly("shared_bytes", fact(&DeviceFacts::shared_bytes))
      .def_property_readonly("memory_bytes", fact(&DeviceFacts::memory_bytes))
      .def_property_readonly("cache_bytes", fact(&DeviceFacts::cache_bytes))
      .def("compile", &Device::compile, py::kw_only(), py::arg("source"), py::arg("options"),
           py::arg("kernels"), Unlocked(), "Build source text; raises CompileError.")
      .def(
          "load",
          [](Device& device, const py::bytes& code, const std::vector<std::string>& kernels) {
            const std::string text = code;
            const py::gil_scoped_release unlocked;
            return device.load(text, kernels);
          },
          py::kw_only(), py::arg("code"), py::arg("kernels"), "Load built code; raises LoadError.")
      .def("allocate", &Device::allocate, py::arg("size_bytes"), Unlocked())
      .def("fill", &Device::fill, py::arg("address"), py::arg("size_bytes"), py::arg("byte"),
           Unlocked())
      .def("copy", &Device::copy, py::arg("to"), py::arg("from_"), py::arg("size_bytes"),
           Unlocked(), "Copy between addresses that do not overlap.")
      .def("release", &Device::release, Unlocked(), "Drop queue and context before exit.");
}

Measurement measure_sequence(LaunchSequence& sequence, const MeasureOptions& options,
                             std::size_t flush_bytes,
                             const std::vector<std::pair<std::size_t, std::size_t>>& outputs,
                             std::vector<std::vector<std::uintptr_t>> keep_into) {
  std::vector<Region> regions;
  regions.reserve(outputs.size());
  for (const auto& [buffer, size_bytes] : outputs) regions.push_back({buffer, size_bytes});
  MeasureOptions checked = options;
  checked.keep_count = keep_into.size();
  SequenceTrial trial(sequence, std::move(regions), std::move(keep_into), flush_bytes);
  return measure(trial, checked, MedianCriterion(options.stopping));
}

void bind_sequence(py::module_& m) {
  py::classh<LaunchSequence>(m, "LaunchSequence", py::module_local(),
                             "Launches replayed natively on sets of addresses.")
      .def(py::init<std::shared_ptr<Device>>(), py::arg("device"))
      .def(
          "launch",
          [](LaunchSequence& sequence, std::shared_ptr<Program> program, std::string kernel,
             const Extent& grid, const Extent& block, int dimensions,
             std::vector<Argument> arguments, std::size_t shared_bytes, bool cooperative) {
            sequence.launch({std::move(program), std::move(kernel), grid, block, dimensions,
                             shared_bytes, cooperative, std::move(arguments)});
          },
          py::kw_only(), py::arg("program"), py::arg("kernel"), py::arg("grid"), py::arg("block"),
          py::arg("dimensions"), py::arg("arguments"), py::arg("shared_bytes") = 0,
          py::arg("cooperative") = false)
      .def(
          "clear",
          [](LaunchSequence& sequence, std::size_t buffer, std::size_t size_bytes) {
            sequence.clear({buffer, size_bytes});
          },
          py::arg("buffer"), py::arg("size_bytes"), "Set a buffer to zero at every run.")
      .def("bind", &LaunchSequence::bind, py::arg("set"), py::arg("addresses"))
      .def("run", &LaunchSequence::run, py::arg("set"), Unlocked())
      .def("measure", &measure_sequence, py::arg("options"), py::kw_only(), py::arg("flush_bytes"),
           py::arg("outputs"), py::arg("keep_into"), Unlocked(),
           "Measure; `outputs` are (buffer, size_bytes), `keep_into[slot]` their addresses.");
}

}  // namespace

void bind_device_kind(py::module_& m, OpenDevice open, CountDevices count) {
  bind_errors();
  bind_measurement(m);
  bind_arguments(m);
  bind_device(m);
  bind_sequence(m);
  m.def("device_count", count, Unlocked());
  m.def("open_device", open, py::arg("index") = 0, Unlocked());
}

}  // namespace kernel_foundry
