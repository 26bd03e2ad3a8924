#include "errors.hpp"

#include <exception>

#include "error.hpp"

namespace py = pybind11;

namespace kernel_foundry {
namespace {

py::object instance(const char* name, const std::exception& error) {
  const py::object type = py::module_::import("kernel_foundry_native.errors").attr(name);
  // A compiler log may hold bytes that are no UTF-8.
  const auto text = py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
      error.what(), static_cast<Py_ssize_t>(std::char_traits<char>::length(error.what())),
      "replace"));
  return type(text);
}

void raise(const py::object& error) {
  PyErr_SetObject(py::type::handle_of(error).ptr(), error.ptr());
}

void raise(const char* name, const std::exception& error) { raise(instance(name, error)); }

const char* name_of(LaunchFault fault) {
  switch (fault) {
  case LaunchFault::illegal_access: return "illegal_access";
  case LaunchFault::resources: return "resources";
  case LaunchFault::invalid: return "invalid";
  case LaunchFault::other: break;
  }
  return "other";
}

}  // namespace

void bind_errors() {
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const DriverUnavailableError& error) {
      raise("DriverUnavailableError", error);
    } catch (const CompileError& error) {
      raise("CompileError", error);
    } catch (const LoadError& error) {
      raise("LoadError", error);
    } catch (const LaunchError& error) {
      py::object launch_error = instance("LaunchError", error);
      launch_error.attr("kind") = name_of(error.fault());
      raise(launch_error);
    } catch (const OutOfMemoryError& error) {
      raise("OutOfMemoryError", error);
    } catch (const DriverError& error) {
      raise("DriverError", error);
    }
  });
}

}  // namespace kernel_foundry
