// What needs no device: shared buffers, comparison, and the measuring loop for Python callables.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <stdexcept>

#include "compare.hpp"
#include "errors.hpp"
#include "host_device.hpp"
#include "host_memory.hpp"
#include "measurement.hpp"
#include "null_device.hpp"
#include "redraw_tensor.hpp"
#include "shared_buffer.hpp"

namespace py = pybind11;

namespace kernel_foundry {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

Measurement measure_on_host(std::function<void(std::size_t)> call, const MeasureOptions& options,
                            std::size_t flush_bytes, const RedrawRows& redraw) {
  return measure_callable(open_null_device(0), std::move(call), options, flush_bytes, redraw);
}

void bind_shared_buffer(py::module_& m) {
  py::classh<SharedBuffer>(m, "SharedBuffer", py::buffer_protocol(),
                           "Memory shared with another process through a file descriptor.")
      .def_static("create", &SharedBuffer::create, py::arg("size_bytes"))
      .def_static("open", &SharedBuffer::open, py::arg("fd"), py::arg("size_bytes"),
                  py::arg("read_only") = false)
      .def("close", &SharedBuffer::close)
      .def_property_readonly("fd", &SharedBuffer::fd)
      .def_property_readonly("address", &SharedBuffer::address)
      .def_property_readonly("size_bytes", &SharedBuffer::size_bytes)
      .def_buffer([](SharedBuffer& buffer) {
        if (buffer.address() == 0) throw std::invalid_argument("the shared buffer is closed");
        return py::buffer_info(reinterpret_cast<std::uint8_t*>(buffer.address()),
                               static_cast<py::ssize_t>(buffer.size_bytes()), buffer.read_only());
      });
}

// Which calls a measurement of so many kept.
KeptCalls kept_calls_of(const py::bytes& draws, std::size_t set_count, std::size_t keep_count,
                        bool has_guests, std::size_t warmup_count, std::size_t call_count) {
  return kept_calls(KnownCallDraws(draws),
                    {set_count, keep_count, has_guests, warmup_count, call_count});
}

Comparison compare_outputs(std::uintptr_t actual, std::uintptr_t expected, std::string dtype,
                           std::size_t count, double rtol, double atol, std::uintptr_t scale,
                           std::size_t groups, std::size_t inner) {
  return compare(actual, expected, {std::move(dtype), count, rtol, atol, scale, groups, inner});
}

void bind_compare(py::module_& m) {
  py::classh<Comparison>(m, "Comparison", "What a comparison of two tensors found.")
      .def_readonly("mismatch_count", &Comparison::mismatch_count)
      .def_readonly("max_abs_error", &Comparison::max_abs_error)
      .def_readonly("max_rel_error", &Comparison::max_rel_error)
      .def_readonly("first_mismatch", &Comparison::first_mismatch)
      .def_readonly("nan_count", &Comparison::nan_count)
      .def_readonly("inf_count", &Comparison::inf_count)
      .def_readonly("poisoned_count", &Comparison::poisoned_count)
      .def_readonly("constant_factor", &Comparison::constant_factor);
  m.def("compare", &compare_outputs, py::kw_only(), py::arg("actual"), py::arg("expected"),
        py::arg("dtype"), py::arg("count"), py::arg("rtol"), py::arg("atol"), py::arg("scale") = 0,
        py::arg("groups") = 1, py::arg("inner") = 1, Unlocked(),
        "Compare every element; `scale` is the address of `groups` float32 values or 0.");
}

void redraw_tensor(std::uintptr_t address, std::string dtype, std::size_t size_bytes,
                   std::uint64_t key, std::uint32_t number, std::uint32_t undo_index,
                   std::uint32_t apply_index) {
  redraw_on_host(address,
                 redraw_pass({std::move(dtype), size_bytes, number}, key, undo_index, apply_index));
}

}  // namespace
}  // namespace kernel_foundry

PYBIND11_MODULE(_core, m) {
  using namespace kernel_foundry;
  m.doc() = "What needs no device.";
  bind_errors();
  bind_measurement(m);
  bind_shared_buffer(m);
  bind_compare(m);
  m.attr("POISON_BYTE") = py::int_(poison_byte);
  m.attr("PAGE_BYTES") = py::int_(page_bytes);
  m.def("measure_callable", &measure_on_host, py::arg("call"), py::arg("options"), py::kw_only(),
        py::arg("flush_bytes"), py::arg("redraw") = py::none(),
        "Measure `call(set)` with the loop that measures candidates.");
  m.def("kept_calls", &kept_calls_of, py::kw_only(), py::arg("draws"), py::arg("set_count"),
        py::arg("keep_count"), py::arg("has_guests"), py::arg("warmup_count"),
        py::arg("call_count"),
        "(sample, set) of each call that a measurement keeps, by keep slot.");
  m.def("redraw", &redraw_tensor, py::arg("address"), py::kw_only(), py::arg("dtype"),
        py::arg("size_bytes"), py::arg("key"), py::arg("number"), py::arg("undo_index") = 0,
        py::arg("apply_index") = 0, Unlocked(),
        "Bring a tensor in place from one call's values to another's; index 0: as drawn.");
  m.def("same_bytes", &same_bytes, py::arg("a"), py::arg("b"), py::arg("size_bytes"), Unlocked());
  m.def("copy", &copy, py::arg("to"), py::arg("from_"), py::arg("size_bytes"), Unlocked());
  m.def("fill", &fill, py::arg("address"), py::arg("size_bytes"), py::arg("byte"), Unlocked());
  m.def("keep_memory", &keep_memory, "Make malloc keep freed memory, as caching allocators do.");
  m.def("cache_bytes", &last_level_cache_bytes, "Size of the last-level cache.");
}
