// Python's side of @NAME@: arrays on the GPU are given by name, and their shapes say the sizes.
#include <pybind11/pybind11.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "@NAME@.h"

namespace py = pybind11;

namespace {

// One dimension of an array: fixed, or the size at a position of the call.
struct Dimension {
  long long fixed;
  int size;
};

struct Array {
  const char* name;
  const char* dtype;
  const char* code;  // of __cuda_array_interface__; null where it has none
  bool is_weight;
  std::vector<Dimension> shape;
};

struct Size {
  const char* name;
  bool is_real;
};

const std::vector<Array> arrays{
@ARRAYS@
};
const std::vector<Size> sizes{@SIZES@};
constexpr bool has_prepare = @PREPARES@;

union Slot {
  unsigned long long address;
  long long whole;
  double real;
};
static_assert(sizeof(@NAME@_call) == @SLOTS@ * sizeof(Slot), "a call is a row of 8 bytes each");

[[noreturn]] void refuse(const Array& array, const std::string& why) {
  throw std::invalid_argument(std::string(array.name) + why);
}

// The address of an array, whose dtype has to be the one that was judged.
unsigned long long address_of(const Array& array, const py::object& given, py::tuple& shape) {
  if (py::hasattr(given, "data_ptr")) {  // torch
    if (!given.attr("is_cuda").cast<bool>()) refuse(array, " is on no GPU");
    const auto dtype = py::str(given.attr("dtype")).cast<std::string>();
    if (dtype != std::string("torch.") + array.dtype) refuse(array, " is " + dtype);
    if (!given.attr("is_contiguous")().cast<bool>()) refuse(array, " is not contiguous");
    shape = py::tuple(given.attr("shape"));
    return given.attr("data_ptr")().cast<unsigned long long>();
  }
  const py::dict known = given.attr("__cuda_array_interface__");
  const auto code = known["typestr"].cast<std::string>();
  if (array.code == nullptr || code != array.code) refuse(array, " is of the type " + code);
  if (known.contains("strides") && !known["strides"].is_none()) refuse(array, " is not contiguous");
  shape = known["shape"].cast<py::tuple>();
  return known["data"].cast<py::tuple>()[0].cast<unsigned long long>();
}

// Reads a shape: sizes that are not known yet become so.
void read_shape(const Array& array, const py::tuple& shape, std::vector<Slot>& found,
                std::vector<bool>& is_known) {
  if (shape.size() != array.shape.size()) refuse(array, " has another number of dimensions");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto length = shape[i].cast<long long>();
    const Dimension& dimension = array.shape[i];
    if (dimension.size < 0) {
      if (length != dimension.fixed) {
        refuse(array, " has " + std::to_string(length) + " in dimension " + std::to_string(i) +
                          ", not " + std::to_string(dimension.fixed));
      }
      continue;
    }
    const auto at = static_cast<std::size_t>(dimension.size);
    if (!is_known[at]) found[at].whole = length;
    is_known[at] = true;
    if (found[at].whole != length) refuse(array, std::string(" has another ") + sizes[at].name);
  }
}

class Kernels {
 public:
  explicit Kernels(int device) { check(@NAME@_open(device, &kernels_)); }
  ~Kernels() { @NAME@_close(kernels_); }
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  void prepare(const py::dict& given, unsigned long long stream) {
    const std::vector<Slot> slots = slots_of(given, true);
#if @PREPARES@
    run(@NAME@_prepare, slots, stream);
#else
    (void)slots, (void)stream;
#endif
  }
  void launch(const py::dict& given, unsigned long long stream) {
    run(@NAME@_launch, slots_of(given, false), stream);
  }

 private:
  static void check(int error) {
    if (error != 0) throw std::runtime_error(@NAME@_error());
  }

  static std::vector<Slot> slots_of(const py::dict& given, bool is_prepare) {
    std::vector<Slot> addresses, numbers(sizes.size());
    std::vector<bool> is_known(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!given.contains(sizes[i].name)) continue;
      const py::object number = given[sizes[i].name];
      if (sizes[i].is_real) numbers[i].real = number.cast<double>();
      if (!sizes[i].is_real) numbers[i].whole = number.cast<long long>();
      is_known[i] = true;
    }
    for (const Array& array : arrays) {
      Slot slot{};
      if (!is_prepare || array.is_weight) {
        if (!given.contains(array.name)) refuse(array, " is missing");
        py::tuple shape;
        slot.address = address_of(array, given[array.name], shape);
        read_shape(array, shape, numbers, is_known);
      }
      addresses.push_back(slot);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!is_known[i]) throw std::invalid_argument(std::string(sizes[i].name) + " is missing");
    }
    addresses.insert(addresses.end(), numbers.begin(), numbers.end());
    return addresses;
  }

  template <typename Function>
  void run(Function function, const std::vector<Slot>& slots, unsigned long long stream) {
    @NAME@_call call;
    std::memcpy(&call, slots.data(), sizeof call);
    int error = 0;
    {
      const py::gil_scoped_release released;
      error = function(kernels_, &call, reinterpret_cast<void*>(stream));
    }
    check(error);
  }

  @NAME@_kernels* kernels_ = nullptr;
};

}  // namespace

PYBIND11_MODULE(_@NAME@, module) {
  py::class_<Kernels>(module, "Kernels")
      .def(py::init<int>(), py::arg("device"))
      .def("prepare", &Kernels::prepare, py::arg("given"), py::arg("stream"))
      .def("launch", &Kernels::launch, py::arg("given"), py::arg("stream"));
  module.attr("has_prepare") = has_prepare;
}
