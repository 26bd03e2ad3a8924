// A plan bound to shapes: which buffers there are, and which steps run on them.
#pragma once

#include <array>
#include <cfloat>
#include <cstring>
#include <deque>
#include <map>

#include "value.hpp"

// What a plan may ask about the device.
struct Limits {
  Value compute_units, sub_group_size, shared_bytes, max_block;
};

struct Parameter {
  const char* name;
  bool is_pointer;
  const char* type;  // of the number, or of the element behind the pointer
};

struct Kernel {
  const char* name;
  std::int64_t max_threads;  // by __launch_bounds__; 0 without
  std::vector<Parameter> parameters;
};

// One argument of a launch: the position of a buffer, or the bytes of a number.
struct Argument {
  int buffer;
  std::array<unsigned char, 8> bytes;
};

struct Step {
  const Kernel* kernel;  // null: fill a buffer with zeros
  int cleared;
  std::array<unsigned, 3> grid, block;
  unsigned shared_bytes;
  bool is_cooperative;
  std::vector<Argument> arguments;
};

using Macros = std::vector<std::pair<std::string, Value>>;
using Named = std::vector<std::pair<const char*, Value>>;

inline std::int64_t item_bytes(const std::string& dtype) {
  static const std::map<std::string, std::int64_t> known{
      {"float64", 8}, {"int64", 8},   {"uint64", 8},        {"float32", 4},     {"int32", 4},
      {"uint32", 4},  {"float16", 2}, {"bfloat16", 2},      {"int16", 2},       {"uint16", 2},
      {"int8", 1},    {"uint8", 1},   {"float8_e4m3fn", 1}, {"float8_e5m2", 1}, {"bool", 1}};
  const auto found = known.find(dtype);
  if (found == known.end()) throw Refusal("there is no dtype " + dtype);
  return found->second;
}

inline std::int64_t size_bytes(const Buffer& buffer) {
  std::int64_t bytes = item_bytes(buffer.dtype);
  for (const std::int64_t size : buffer.shape) bytes *= size;
  return bytes;
}

// The bits of a number in 16 bits, rounded to the nearest, ties to even.
inline std::uint16_t half_bits(double number) {
  const std::uint16_t sign = std::signbit(number) ? 0x8000 : 0;
  if (std::isnan(number)) return 0x7e00 | sign;
  if (std::isinf(number)) return 0x7c00 | sign;
  int exponent = 0;
  std::frexp(number, &exponent);
  exponent = number == 0 || exponent < -13 ? -14 : exponent - 1;
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(std::fabs(number), 10 - exponent)));
  // A step past the largest mantissa is the next exponent's first.
  const int bits = (exponent + 14) * 1024 + steps;
  if (bits >= 0x7c00) throw Refusal("a number does not fit float16");
  return static_cast<std::uint16_t>(bits | sign);
}
inline std::uint16_t bfloat16_bits(double number) {
  const auto narrow = static_cast<float>(number);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof bits);
  if (std::isnan(narrow)) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename Number>
std::array<unsigned char, 8> bytes_of(Number number) {
  std::array<unsigned char, 8> bytes{};
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

// The bytes of a number as a kernel takes it.
inline std::array<unsigned char, 8> packed(const std::string& type, const Value& value) {
  const double real = value.as_real();
  if (type == "float64") return bytes_of(real);
  if (type == "float16") return bytes_of(half_bits(real));
  if (type == "bfloat16") return bytes_of(bfloat16_bits(real));
  if (type == "bool") return bytes_of(static_cast<unsigned char>(truth(value)));
  if (type == "float32") {
    const auto narrow = static_cast<float>(real);
    if (std::isinf(narrow) && !std::isinf(real)) throw Refusal("a number does not fit float32");
    return bytes_of(narrow);
  }
  const bool is_signed = type.compare(0, 3, "int") == 0;
  if (!is_signed && type.compare(0, 4, "uint") != 0) throw Refusal("no number is a " + type);
  if (!value.is_whole() && value.real != std::trunc(value.real)) {
    throw Refusal("a fraction is no " + type);
  }
  const std::int64_t whole = to_int(value).integer;
  const auto bits = static_cast<int>(8 * item_bytes(type));
  const bool fits = bits == 64  ? is_signed || whole >= 0
                    : is_signed ? whole >= -(1LL << (bits - 1)) && whole < 1LL << (bits - 1)
                                : whole >= 0 && whole < 1LL << bits;
  if (!fits) throw Refusal(std::to_string(whole) + " does not fit " + type);
  return bytes_of(whole);  // the first bytes are those of narrower types
}

// Takes down what a plan launches.
class Recorder {
 public:
  Recorder(const std::vector<Kernel>* kernels, const Limits& limits)
      : kernels_(kernels), limits_(limits) {}

  Value tensor(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape) {
    return add({Buffer::Kind::tensor, name, dtype, std::move(shape)});
  }

  void declare(const std::vector<Kernel>& kernels) { kernels_ = &kernels; }

  void require(bool holds, const char* condition) const {
    if (!holds) throw Refusal(std::string("the plan asks for ") + condition);
  }
  void require(const Value& holds, const char* condition) const {
    require(truth(holds), condition);
  }

  Value empty(const Value& shape, const Value& dtype) {
    Buffer made{Buffer::Kind::scratch, "", dtype.as_text(), {}};
    item_bytes(made.dtype);
    const Value sizes = shape.kind == Value::Kind::tuple ? shape : tuple({shape});
    for (const Value& size : sizes.as_tuple()) {
      require(size.as_whole() > 0, "sizes above 0");
      made.shape.push_back(size.integer);
    }
    return add(std::move(made));
  }
  // Cleared in every call.
  Value zeros(const Value& shape, const Value& dtype) {
    Value made = empty(shape, dtype);
    steps.push_back({nullptr, position(made.as_tensor()), {}, {}, 0, false, {}});
    return made;
  }

  struct Request {
    const char* kernel;
    Value setup;
    std::vector<Value> given;
    Named named;
  };
  void launch(const Request& request) {
    const Kernel& kernel = kernel_named(request.kernel);
    const std::vector<Value>& setup = request.setup.as_tuple();
    const auto grid = extent(setup[0]), block = extent(setup[1]);
    const std::int64_t threads = static_cast<std::int64_t>(block[0]) * block[1] * block[2];
    require(threads <= limits_.max_block.integer &&
                (kernel.max_threads == 0 || threads <= kernel.max_threads),
            "more threads of a block than there can be");
    const std::int64_t shared = setup.size() > 2 ? setup[2].as_whole() : 0;
    require(shared >= 0 && shared <= limits_.shared_bytes.integer,
            "more shared memory than a block can have");
    require(request.given.size() + request.named.size() == kernel.parameters.size(),
            "other arguments than the kernel has");
    Step step{&kernel, -1, grid, block, static_cast<unsigned>(shared), setup.size() > 3, {}};
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      step.arguments.push_back(argument(kernel.parameters[i], value_of(request, kernel, i)));
    }
    steps.push_back(std::move(step));
  }

  // Takes what was recorded so far for `prepare`.
  void end_prepare() {
    prepare.swap(steps);
    prepared_count_ = buffers.size();
  }
  // Says which memory of `prepare` is read by `launch`.
  void finish() {
    for (const Step& step : steps) {
      for (const Argument& each : step.arguments) {
        const auto at = static_cast<std::size_t>(each.buffer);
        if (each.buffer >= 0 && at < prepared_count_ &&
            buffers[at]->kind == Buffer::Kind::scratch) {
          buffers[at]->kind = Buffer::Kind::prepared;
        }
      }
    }
  }

  std::vector<Buffer*> buffers;  // that steps name, in order of their first use
  std::vector<Step> prepare, steps;

 private:
  Value add(Buffer buffer) {
    known_.push_back(std::move(buffer));
    return Value(&known_.back());
  }

  int position(Buffer& buffer) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i] == &buffer) return static_cast<int>(i);
    }
    buffers.push_back(&buffer);
    return static_cast<int>(buffers.size() - 1);
  }

  const Kernel& kernel_named(const std::string& name) const {
    for (const Kernel& kernel : *kernels_) {
      if (name == kernel.name) return kernel;
    }
    throw Refusal("there is no kernel " + name);
  }

  static const Value& value_of(const Request& request, const Kernel& kernel, std::size_t index) {
    if (index < request.given.size()) return request.given[index];
    const std::string name = kernel.parameters[index].name;
    for (const auto& [key, value] : request.named) {
      if (name == key) return value;
    }
    throw Refusal("a launch gives no " + name);
  }

  Argument argument(const Parameter& parameter, const Value& value) {
    if (!parameter.is_pointer) return {-1, packed(parameter.type, value)};
    Buffer& buffer = value.as_tensor();
    const std::string type = parameter.type;
    const bool is_byte =
        buffer.dtype == "bool" || buffer.dtype == "float8_e4m3fn" || buffer.dtype == "float8_e5m2";
    const bool fits = type == "void" || type == "unknown" || type == buffer.dtype ||
                      (is_byte && (type == "uint8" || type == "int8"));
    if (!fits) throw Refusal(std::string(parameter.name) + " is no pointer to " + buffer.dtype);
    return {position(buffer), {}};
  }

  static std::array<unsigned, 3> extent(const Value& value) {
    const Value sizes = value.kind == Value::Kind::tuple ? value : tuple({value});
    std::array<unsigned, 3> found{1, 1, 1};
    for (std::size_t i = 0; i < sizes.as_tuple().size(); ++i) {
      const std::int64_t size = sizes.as_tuple()[i].as_whole();
      if (i >= 3 || size <= 0 || size > UINT_MAX) throw Refusal("no launch has such sizes");
      found[i] = static_cast<unsigned>(size);
    }
    return found;
  }

  const std::vector<Kernel>* kernels_;
  const Limits& limits_;
  std::deque<Buffer> known_;
  std::size_t prepared_count_ = 0;
};

// A launch plan; each of the file's is derived from it.
class Plan {
 public:
  Plan(Recorder& recorder, const Limits& limits, const std::map<std::string, Value>& names,
       const std::map<std::string, std::string>& paths)
      : run(recorder), device(limits), names_(names), paths_(paths) {}
  virtual ~Plan() = default;

  // Computes CONST, checks WHERE, and returns the macros of the object code.
  virtual Macros macros() = 0;
  virtual void prepare() {}
  virtual void launch() = 0;

 protected:
  Recorder& run;
  const Limits& device;

  Value name(const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end()) throw Refusal("the task has no " + name);
    return found->second;
  }
  Value parameter(const Value& path) const {
    const auto found = paths_.find(path.as_text());
    if (found == paths_.end()) throw Refusal("the module has no " + path.as_text());
    return name(found->second);
  }
  // What `prepare` hands to `launch`.
  void keep(const std::string& name, const Value& value) { made_[name] = value; }
  Value made(const std::string& name) const {
    const auto found = made_.find(name);
    if (found == made_.end()) throw Refusal("prepare has not made " + name);
    return found->second;
  }

 private:
  const std::map<std::string, Value>& names_;
  const std::map<std::string, std::string>& paths_;
  std::map<std::string, Value> made_;
};
