#include "errors.hpp"

#include <exception>

#include "error.hpp"

namespace py = pybind11;

namespace kernel_foundry {
namespace {

void raise(const char* name, const std::exception& error) {
  const py::object type = py::module_::import("kernel_foundry_native.errors").attr(name);
  // A compiler log may hold bytes that are no UTF-8.
  const auto text = py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
      error.what(), static_cast<Py_ssize_t>(std::char_traits<char>::length(error.what())),
      "replace"));
  PyErr_SetObject(type.ptr(), text.ptr());
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
      raise("LaunchError", error);
    } catch (const DriverError& error) {
      raise("DriverError", error);
    }
  });
}

}  // namespace kernel_foundry
