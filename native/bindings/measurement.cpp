#include "measurement.hpp"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "callable_trial.hpp"
#include "null_device.hpp"

namespace py = pybind11;

namespace kernel_foundry {
namespace {

using ClockRow = std::tuple<std::size_t, unsigned, unsigned, unsigned, std::vector<std::string>>;

std::vector<ClockRow> clock_rows(const Measurement& found) {
  std::vector<ClockRow> rows;
  for (const ClockBlock& block : found.clocks) {
    rows.emplace_back(block.sample_count, block.compute_mhz_before, block.compute_mhz_after,
                      block.memory_mhz, block.reasons);
  }
  return rows;
}

}  // namespace

RedrawPlan plan_of(const RedrawRows& rows) {
  RedrawPlan plan;
  if (!rows) return plan;
  plan.key = std::get<0>(*rows);
  for (const auto& [dtype, size_bytes, number] : std::get<1>(*rows)) {
    plan.tensors.push_back({dtype, size_bytes, number});
  }
  plan.addresses = std::get<2>(*rows);
  return plan;
}

Measurement measure_callable(std::shared_ptr<Device> device, std::function<void(std::size_t)> call,
                             const MeasureOptions& options, std::size_t flush_bytes,
                             const RedrawRows& redraw) {
  // The spans of a device that is not timed by them are of work it was given itself.
  if (!device->times_by_events()) device = open_null_device(0);
  CallableTrial trial(std::move(device), std::move(call), flush_bytes, plan_of(redraw));
  const py::gil_scoped_release unlocked;
  return measure(trial, options, MedianCriterion(options.stopping));
}

void bind_measuring(py::classh<Device>& device) {
  device.def("measure_callable", &measure_callable, py::arg("call"), py::arg("options"),
             py::kw_only(), py::arg("flush_bytes"), py::arg("redraw") = py::none(),
             "Measure `call(set)`, which works on the host or on the device's stream.");
}

void bind_measurement(py::module_& m) {
  py::classh<MeasureOptions>(m, "MeasureOptions", py::module_local(), "How a measurement is taken.")
      .def(py::init([](std::size_t warmup_calls, std::size_t min_samples, std::size_t max_samples,
                       double max_seconds, double target_half_width, std::size_t set_count,
                       bool is_cold, std::size_t keep_count, double stop_above_ns,
                       double stop_factor, double min_seconds, int draws) {
             MeasureOptions options;
             options.warmup_calls = warmup_calls;
             options.set_count = set_count;
             options.draws = draws;
             options.is_cold = is_cold;
             options.keep_count = keep_count;
             options.stopping = {min_samples,   max_samples, max_seconds, target_half_width,
                                 stop_above_ns, stop_factor, min_seconds};
             return options;
           }),
           py::kw_only(), py::arg("warmup_calls"), py::arg("min_samples"), py::arg("max_samples"),
           py::arg("max_seconds"), py::arg("target_half_width"), py::arg("set_count"),
           py::arg("is_cold"), py::arg("keep_count") = 0, py::arg("stop_above_ns") = 0.0,
           py::arg("stop_factor") = MedianCriterion::Options().stop_factor,
           py::arg("min_seconds") = 0.0, py::arg("draws") = -1);

  py::classh<Measurement>(m, "Measurement", py::module_local(), "Raw samples and why they ended.")
      .def_readonly("samples_ns", &Measurement::samples_ns)
      .def_readonly("device_ns", &Measurement::device_ns)
      .def_readonly("host_ns", &Measurement::host_ns)
      .def_readonly("prepare_ns", &Measurement::prepare_ns)
      .def_property_readonly("clocks", &clock_rows)
      .def_readonly("stop_reason", &Measurement::stop_reason)
      .def_readonly("discarded_count", &Measurement::discarded_count)
      .def_readonly("warmup_count", &Measurement::warmup_count)
      .def_readonly("elapsed_ns", &Measurement::elapsed_ns)
      .def_readonly("half_width", &Measurement::half_width)
      .def_readonly("kept", &Measurement::kept)
      .def_readonly("guest_calls", &Measurement::guest_calls);
}

}  // namespace kernel_foundry
