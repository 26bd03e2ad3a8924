#include "launches.hpp"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "byte_ranges.hpp"
#include "measurement.hpp"
#include "sequence_trial.hpp"

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
      "buffer_argument", [](std::size_t index) { return Argument(BufferArgument{index}); },
      py::arg("index"), "A bound buffer, by index.");
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

using Addresses = std::vector<std::vector<std::uintptr_t>>;
using RegionRows = std::vector<std::pair<std::size_t, std::size_t>>;

std::vector<Region> regions_of(const RegionRows& rows) {
  std::vector<Region> regions;
  regions.reserve(rows.size());
  for (const auto& [buffer, size_bytes] : rows) regions.push_back({buffer, size_bytes});
  return regions;
}

// Number and bytes of each tensor, its addresses by set and by guest, those aside, and by guest
// those of the outputs.
using GuestRows =
    std::optional<std::tuple<std::vector<std::pair<std::uint32_t, std::size_t>>, Addresses,
                             Addresses, std::vector<std::uintptr_t>, Addresses>>;

GuestInputs guests_of(const GuestRows& rows) {
  GuestInputs guests;
  if (!rows) return guests;
  const auto& [tensors, addresses, from, aside, keep_into] = *rows;
  for (const auto& [number, size_bytes] : tensors) guests.tensors.push_back({number, size_bytes});
  guests.addresses = addresses;
  guests.from = from;
  guests.aside = aside;
  guests.keep_into = keep_into;
  return guests;
}

Measurement
measure_sequence(LaunchSequence& sequence, const MeasureOptions& options, std::size_t flush_bytes,
                 const RegionRows& outputs, Addresses keep_into, const RegionRows& scratch,
                 const RedrawRows& redraw, LaunchSequence* preparation, const RegionRows& prepared,
                 std::vector<std::uint32_t> weights, Addresses sealed_into, const RangeRows& guards,
                 std::function<Stretches()> library_memory, const GuestRows& guests, Cover* cover) {
  MeasureOptions checked = options;
  checked.keep_count = keep_into.size();
  TrialPlan plan{
      regions_of(outputs),
      regions_of(scratch),
      std::move(keep_into),
      flush_bytes,
      plan_of(redraw),
      {preparation, regions_of(prepared), std::move(weights), std::move(sealed_into), cover},
      ranges_of(guards),
      std::move(library_memory),
      guests_of(guests)};
  SequenceTrial trial(sequence, std::move(plan));
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
      .def(
          "call",
          [](LaunchSequence& sequence, std::function<std::uintptr_t(std::size_t)> function,
             std::ptrdiff_t buffer) {
            HostCall call{std::move(function), std::nullopt};
            if (buffer >= 0) call.result = static_cast<std::size_t>(buffer);
            sequence.call(std::move(call));
          },
          py::arg("function"), py::arg("buffer") = -1,
          "Call `function(set)`; what it returns is the address of `buffer` from there on.")
      .def("bind", &LaunchSequence::bind, py::arg("set"), py::arg("addresses"))
      .def("run", &LaunchSequence::run, py::arg("set"), Unlocked())
      .def("enqueue", &LaunchSequence::enqueue, py::arg("set"), Unlocked())
      .def("profile", &LaunchSequence::profile, py::arg("set"), py::kw_only(),
           py::arg("flush_bytes") = 0, Unlocked(),
           "Run step by step, on caches emptied before if `flush_bytes`; nanoseconds of each.")
      .def("capture", &LaunchSequence::capture, py::arg("set"), Unlocked(),
           "Record the steps as a graph to be replayed, where that can be.")
      .def_property_readonly(
          "last_addresses",
          [](const LaunchSequence& sequence) { return sequence.last_addresses(); },
          "Addresses of the last run, with the results of its calls.")
      .def(
          "measure", &measure_sequence, py::arg("options"), py::kw_only(), py::arg("flush_bytes"),
          py::arg("outputs"), py::arg("keep_into"), py::arg("scratch") = RegionRows(),
          py::arg("redraw") = py::none(), py::arg("preparation") = py::none(),
          py::arg("prepared") = RegionRows(), py::arg("weights") = std::vector<std::uint32_t>(),
          py::arg("sealed_into") = Addresses(), py::arg("guards") = RangeRows(),
          py::arg("library_memory") = py::none(), py::arg("guests") = py::none(),
          py::arg("cover") = py::none(), Unlocked(),
          "Measure; `outputs` are (buffer, size_bytes), `keep_into[slot]` their addresses, `guards`"
          " (address, size_bytes, byte) that are written again before each call; so is what"
          " `library_memory` returns, (address, size_bytes), with some byte. `guests` are inputs of"
          " calls among the timed ones: (number, size_bytes) of all tensors, their addresses by set"
          " and by guest, those where a set's own are meanwhile, those of outputs by guest. "
          "`cover` hides while"
          " `preparation` runs.");
}

}  // namespace

void bind_launches(py::module_& m) {
  bind_arguments(m);
  bind_sequence(m);
}

}  // namespace kernel_foundry
