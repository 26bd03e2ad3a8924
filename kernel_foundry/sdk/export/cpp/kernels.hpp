// The kernels of this file on one GPU: found for the sizes of a call, bound once, and run.
#pragma once

#include <cstdio>
#include <mutex>

#include "driver.hpp"

// A number of the task: fixed in all that was judged, or one of the call's sizes.
struct Number {
  Value fixed;
  int size;  // position among the call's sizes; -1: fixed
};

struct Tensor {
  enum class Role { input, weight, output };
  const char* name;
  const char* path;  // of a weight, such as "layers.0.weight"
  Role role;
  const char* dtype;
  std::vector<Number> shape;
};

struct Scalar {
  const char* name;
  bool is_tuple;
  std::vector<Number> numbers;
};

// A size of calls that is not the same in all that was judged.
struct Size {
  const char* name;
  bool is_real;
};

// Object code, with the macros that it was built with.
struct Program {
  Macros macros;
  const void* code;
  std::vector<Kernel> kernels;
};

using MakePlan = std::unique_ptr<Plan> (*)(Recorder&, const Limits&,
                                           const std::map<std::string, Value>&,
                                           const std::map<std::string, std::string>&);

// A plan with what it was judged on.
struct Specialisation {
  MakePlan plan;
  std::vector<std::pair<double, double>> judged;  // least and largest of each size
  std::vector<Program> programs;
};

struct Task {
  const char* architecture;
  std::int64_t sub_group_size, shared_bytes, max_block;
  std::vector<Tensor> tensors;
  std::vector<Scalar> scalars;
  std::vector<Size> sizes;
  std::vector<Specialisation> specialisations;
};

// The pointers of a call, then its sizes: what the header's struct holds.
union Slot {
  const void* pointer;
  std::int64_t whole;
  double real;
};

// A launch with its numbers; it is given the addresses of its buffers in each call.
class BoundLaunch {
 public:
  BoundLaunch(const Step& step, Driver::Handle program, int shared_bytes) : step_(step) {
    const Driver& driver = Driver::instance();
    if (step.kernel == nullptr) return;
    driver.check(driver.module_function(&function_, program, step.kernel->name),
                 "cuModuleGetFunction");
    int fixed = 0;
    driver.check(driver.function_attribute(&fixed, 1, function_), "cuFuncGetAttribute");
    constexpr int dynamic_shared = 8, carveout = 9, large_clusters = 14, usual_shared = 48 << 10;
    driver.check(driver.function_set(function_, dynamic_shared, shared_bytes - fixed),
                 "cuFuncSetAttribute");
    if (fixed + static_cast<int>(step.shared_bytes) > usual_shared) {
      driver.check(driver.function_set(function_, carveout, 100), "cuFuncSetAttribute");
    }
    if (cluster_size() > 8) {  // more than every GPU has
      driver.check(driver.function_set(function_, large_clusters, 1), "cuFuncSetAttribute");
    }
  }

  void run(const std::vector<Driver::Address>& addresses, const std::vector<std::int64_t>& bytes,
           Driver::Handle stream) {
    const Driver& driver = Driver::instance();
    if (step_.kernel == nullptr) {
      const auto at = static_cast<std::size_t>(step_.cleared);
      driver.check(driver.fill(addresses[at], 0, static_cast<std::size_t>(bytes[at]), stream),
                   "cuMemsetD8Async");
      return;
    }
    std::vector<void*> parameters;
    for (Argument& argument : step_.arguments) {
      if (argument.buffer >= 0) {
        argument.bytes = bytes_of(addresses[static_cast<std::size_t>(argument.buffer)]);
      }
      parameters.push_back(argument.bytes.data());
    }
    const auto& grid = step_.grid;
    const auto& block = step_.block;
    if (step_.is_cooperative) {
      driver.check(driver.launch_cooperative(function_, grid[0], grid[1], grid[2], block[0],
                                             block[1], block[2], step_.shared_bytes, stream,
                                             parameters.data()),
                   "cuLaunchCooperativeKernel");
    } else {
      driver.check(driver.launch(function_, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                 step_.shared_bytes, stream, parameters.data(), nullptr),
                   "cuLaunchKernel");
    }
  }

 private:
  int cluster_size() const {
    int size = 1;
    for (const int attribute : {11, 12, 13}) {
      int extent = 0;
      // A driver that knows no clusters has no such attribute.
      if (Driver::instance().function_attribute(&extent, attribute, function_) != 0) return 1;
      size *= extent > 1 ? extent : 1;
    }
    return size;
  }

  Step step_;
  Driver::Handle function_ = nullptr;
};

// Memory that `prepare` fills and `launch` reads.
struct Layout {
  std::vector<DeviceMemory> memory;
  bool is_filled = false;
};

// A plan bound to sizes.
struct BoundCall {
  std::vector<int> tensors;  // of each buffer: the position in the call, or -1
  std::vector<std::int64_t> bytes;
  std::vector<Driver::Address> addresses;
  std::vector<DeviceMemory> scratch;
  std::vector<BoundLaunch> prepare, steps;
  Layout* layout = nullptr;  // null: the plan prepares nothing
};

class Kernels {
 public:
  Kernels(const Task& task, int device) : task_(task) {
    const Driver& driver = Driver::instance();
    driver.check(driver.device_get(&device_, device), "cuDeviceGet");
    constexpr int major = 75, minor = 76, units = 16, max_block = 1, shared = 97;
    const std::string found = "sm_" + std::to_string(fact(major)) + std::to_string(fact(minor));
    std::string wanted = task.architecture;
    if (wanted.back() == 'a' || wanted.back() == 'f') wanted.pop_back();
    if (wanted != found) {
      throw Refusal("kernels are for " + wanted + ", and this GPU is " + found);
    }
    shared_bytes_ = fact(shared);
    limits_ = {Value(std::int64_t{fact(units)}), Value(task.sub_group_size),
               min({Value(task.shared_bytes), Value(std::int64_t{shared_bytes_})}),
               min({Value(task.max_block), Value(std::int64_t{fact(max_block)})})};
    driver.check(driver.context_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
  }

  ~Kernels() {
    const Driver& driver = Driver::instance();
    if (driver.context_push(context_) == 0) {
      calls_.clear();
      layouts_.clear();
      for (const auto& [code, program] : programs_) driver.module_unload(program);
      Driver::Handle popped = nullptr;
      driver.context_pop(&popped);
    }
    driver.context_release(device_);
  }
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  void prepare(const Slot* slots, Driver::Handle stream) {
    const std::lock_guard lock(mutex_);
    const CurrentContext current(context_);
    BoundCall& call = bound(slots);
    if (call.layout == nullptr) return;
    run(call, call.prepare, slots, stream, /*has_inputs=*/false);
    call.layout->is_filled = true;
  }

  void launch(const Slot* slots, Driver::Handle stream) {
    const std::lock_guard lock(mutex_);
    const CurrentContext current(context_);
    BoundCall& call = bound(slots);
    if (call.layout != nullptr && !call.layout->is_filled) {
      throw Refusal("the weights were not prepared for these sizes");
    }
    run(call, call.steps, slots, stream, /*has_inputs=*/true);
  }

 private:
  int fact(int attribute) const {
    const Driver& driver = Driver::instance();
    int value = 0;
    driver.check(driver.device_attribute(&value, attribute, device_), "cuDeviceGetAttribute");
    return value;
  }

  void run(BoundCall& call, std::vector<BoundLaunch>& launches, const Slot* slots,
           Driver::Handle stream, bool has_inputs) const {
    constexpr std::uintptr_t alignment = 256;
    for (std::size_t i = 0; i < call.tensors.size(); ++i) {
      if (call.tensors[i] < 0) continue;
      const auto at = static_cast<std::size_t>(call.tensors[i]);
      if (!has_inputs && task_.tensors[at].role != Tensor::Role::weight) continue;
      const auto address = reinterpret_cast<std::uintptr_t>(slots[at].pointer);
      if (address == 0 || address % alignment != 0) {
        throw Refusal(std::string(task_.tensors[at].name) +
                      " is null, or begins at no multiple of " + std::to_string(alignment) +
                      " bytes");
      }
      call.addresses[i] = address;
    }
    for (BoundLaunch& launch : launches) launch.run(call.addresses, call.bytes, stream);
  }

  BoundCall& bound(const Slot* slots) {
    const Slot* sizes = slots + task_.tensors.size();
    std::vector<std::int64_t> key;
    for (std::size_t i = 0; i < task_.sizes.size(); ++i) key.push_back(sizes[i].whole);
    const auto found = calls_.find(key);
    if (found != calls_.end()) return found->second;
    std::string reasons;
    for (std::size_t i = 0; i < task_.specialisations.size(); ++i) {
      try {
        return calls_.emplace(key, bind(i, sizes)).first->second;
      } catch (const Refusal& refusal) {
        reasons += (reasons.empty() ? "" : "; ") + std::string(refusal.what());
      }
    }
    throw Refusal(reasons);
  }

  BoundCall bind(std::size_t index, const Slot* sizes) {
    const Specialisation& chosen = task_.specialisations[index];
    check_range(chosen, sizes);
    Recorder recorder(nullptr, limits_);
    std::map<std::string, std::string> paths;
    const auto names = names_of(recorder, sizes, paths);
    const auto plan = chosen.plan(recorder, limits_, names, paths);
    const Macros macros = plan->macros();
    const Program& program = program_of(chosen, macros);
    recorder.declare(program.kernels);
    plan->prepare();
    recorder.end_prepare();
    plan->launch();
    recorder.finish();
    return placed(recorder, loaded(program.code), std::to_string(index));
  }

  void check_range(const Specialisation& chosen, const Slot* sizes) const {
    for (std::size_t i = 0; i < task_.sizes.size(); ++i) {
      const bool is_real = task_.sizes[i].is_real;
      const double size = is_real ? sizes[i].real : static_cast<double>(sizes[i].whole);
      const auto [least, largest] = chosen.judged[i];
      if (!(least <= size && size <= largest)) {
        throw Refusal(std::string(task_.sizes[i].name) + " = " + shown(size) +
                      " was not judged, only " + shown(least) + " to " + shown(largest));
      }
    }
  }

  static std::string shown(double number) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.15g", number);
    return text.data();
  }

  Value number(const Number& number, const Slot* sizes) const {
    if (number.size < 0) return number.fixed;
    const auto at = static_cast<std::size_t>(number.size);
    return task_.sizes[at].is_real ? Value(sizes[at].real) : Value(sizes[at].whole);
  }

  std::map<std::string, Value> names_of(Recorder& recorder, const Slot* sizes,
                                        std::map<std::string, std::string>& paths) const {
    std::map<std::string, Value> names;
    for (const Tensor& tensor : task_.tensors) {
      std::vector<std::int64_t> shape;
      for (const Number& size : tensor.shape) shape.push_back(number(size, sizes).as_whole());
      names[tensor.name] = recorder.tensor(tensor.name, tensor.dtype, std::move(shape));
      if (*tensor.path != 0) paths[tensor.path] = tensor.name;
    }
    // Plans may call a single output out0 as well.
    const auto out = names.find("out");
    if (out != names.end()) names.emplace("out0", out->second);
    for (const Scalar& scalar : task_.scalars) {
      std::vector<Value> values;
      for (const Number& each : scalar.numbers) values.push_back(number(each, sizes));
      names[scalar.name] = scalar.is_tuple ? Value(std::move(values)) : values[0];
    }
    return names;
  }

  static const Program& program_of(const Specialisation& chosen, const Macros& macros) {
    for (const Program& program : chosen.programs) {
      if (program.macros == macros) return program;
    }
    throw Refusal("there is no object code for these sizes");
  }

  Driver::Handle loaded(const void* code) {
    Driver::Handle& program = programs_[code];
    if (program == nullptr) {
      const Driver& driver = Driver::instance();
      driver.check(driver.module_load(&program, code, 0, nullptr, nullptr), "cuModuleLoadDataEx");
    }
    return program;
  }

  // Gives all buffers of a recorded plan their memory. Calls whose `prepare` makes the same share
  // what it made.
  BoundCall placed(const Recorder& recorder, Driver::Handle program, std::string layout) {
    BoundCall call;
    for (const Step& step : recorder.prepare) {
      call.prepare.emplace_back(step, program, shared_bytes_);
    }
    for (const Step& step : recorder.steps) call.steps.emplace_back(step, program, shared_bytes_);
    layout += "/" + std::to_string(reinterpret_cast<std::uintptr_t>(program));
    for (const Buffer* buffer : recorder.buffers) {
      call.bytes.push_back(size_bytes(*buffer));
      if (buffer->kind != Buffer::Kind::prepared) continue;
      layout += "/" + buffer->dtype;
      for (const std::int64_t size : buffer->shape) layout += "," + std::to_string(size);
    }
    if (!recorder.prepare.empty()) call.layout = &layouts_[layout];
    std::size_t prepared = 0;
    for (std::size_t i = 0; i < recorder.buffers.size(); ++i) {
      const Buffer& buffer = *recorder.buffers[i];
      call.tensors.push_back(buffer.kind == Buffer::Kind::tensor ? position(buffer.name) : -1);
      call.addresses.push_back(0);
      if (buffer.kind == Buffer::Kind::tensor) continue;
      const bool is_shared = buffer.kind == Buffer::Kind::prepared;
      std::vector<DeviceMemory>& memory = is_shared ? call.layout->memory : call.scratch;
      const std::size_t at = is_shared ? prepared++ : memory.size();
      if (at == memory.size()) memory.emplace_back(call.bytes[i]);
      call.addresses[i] = memory[at].address();
    }
    return call;
  }

  int position(const std::string& name) const {
    for (std::size_t i = 0; i < task_.tensors.size(); ++i) {
      if (name == task_.tensors[i].name) return static_cast<int>(i);
    }
    throw Refusal("the task has no tensor " + name);
  }

  const Task& task_;
  int device_ = 0, shared_bytes_ = 0;
  Driver::Handle context_ = nullptr;
  Limits limits_;
  std::mutex mutex_;
  std::map<const void*, Driver::Handle> programs_;
  std::map<std::string, Layout> layouts_;
  std::map<std::vector<std::int64_t>, BoundCall> calls_;
};

inline thread_local std::string last_error;

// Runs what a function of the header does; returns what it returns.
template <typename Work>
int guarded(Work work) noexcept {
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
    return 1;
  }
}
