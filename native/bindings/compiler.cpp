#include "compiler.hpp"

#include <pybind11/stl.h>

#include <string>

#include "device.hpp"

namespace py = pybind11;

namespace kernel_foundry {
namespace {

// A compiler's log may hold bytes that are no UTF-8.
py::str text_of(const std::string& bytes) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

}  // namespace

void bind_compiler(py::module_& m) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::classh<ObjectCode>(m, "ObjectCode", py::module_local(), "Built code for any process.")
      .def_property_readonly("code", [](const ObjectCode& o) { return py::bytes(o.code); })
      .def_property_readonly("assembly", [](const ObjectCode& o) { return py::bytes(o.assembly); })
      .def_property_readonly("log", [](const ObjectCode& o) { return text_of(o.log); })
      .def_readonly("build_ns", &ObjectCode::build_ns);

  py::classh<Compiler>(m, "Compiler", py::module_local(), "Source text to object code.")
      .def_property_readonly("architecture", &Compiler::architecture)
      .def_property_readonly("compiler_version", &Compiler::version)
      .def("compile", &Compiler::compile, py::kw_only(), py::arg("source"), py::arg("options"),
           py::arg("kernels"), Unlocked(), "Build source text; raises CompileError.")
      .def("release", &Compiler::release, Unlocked(), "Drop what must be gone before exit.");
}

}  // namespace kernel_foundry
