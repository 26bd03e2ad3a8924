#include "device_kind.hpp"

#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "launches.hpp"
#include "measurement.hpp"

namespace py = pybind11;

namespace kernel_foundry {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

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

}  // namespace

void bind_device_kind(py::module_& m, OpenDevice open, CountDevices count) {
  bind_errors();
  bind_measurement(m);
  bind_device(m);
  bind_launches(m);
  m.def("device_count", count, Unlocked());
  m.def("open_device", open, py::arg("index") = 0, Unlocked());
}

}  // namespace kernel_foundry
