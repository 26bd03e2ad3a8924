"""A plan as a C++ struct launches what the plan's interpreter launches."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan import parse
from kernel_foundry.sdk.export import cpp_folder
from kernel_foundry.sdk.export.c_text import c_string, c_value
from kernel_foundry.sdk.export.plan_struct import plan_struct
from kernel_foundry.sdk.export.torch_file import kernel_declaration
from tests.export.plan_cases import (
    CODE,
    LIMITS,
    NAMES,
    PLANS,
    PlanCase,
    plan_case,
)

ARITHMETIC = """
def launch(x, w, out):
    for a, b in ((7, 2), (-7, 2), (7, -2), (-7.5, 2), (7, -2.5), (0.1, 3), (True, 2)):
        run[1, 1](x, w, out, 1, a // b)
        run[1, 1](x, w, out, 1, a % b)
        run[1, 1](x, w, out, 1, a / b)
        run[1, 1](x, w, out, int(a), a ** 2 + 2 ** -3 + abs(a) - 1e-05)
        run[1, 1](x, w, out, 1 if 0 < a <= 7 != b else 2, not a or 0.5)
        run[1, 1](x, w, out, cdiv(100, int(b)), min(a, b, 3) + max((a, b)))
    for i in range(3, -4, -3):
        for part in (x.shape[::-1], x.shape[1:], x.shape[-5:1], x.shape[:-1:1]):
            run[len(part), 1](x, w, out, part[-1] + i, 2.0)
"""
NUMBERS = """
extern "C" __global__ void take(__half a, __nv_bfloat16 b, unsigned char c, bool d, short e,
                                unsigned int f, double g, float* out) {}
"""
PACKED = """
def launch(x, w, out):
    for a in (1.0, 0.1, -65504.0, 6.1e-05, 5.97e-08, 2.98e-08, 0.333333, 1e-300, 2049, 0):
        take[1, 1](a, a, 255, a > 0.5, -32768, 4294967295, a, out)
"""
MAIN = """
namespace {
using Made = std::unique_ptr<Plan> (*)(Recorder&, const Limits&,
                                       const std::map<std::string, Value>&,
                                       const std::map<std::string, std::string>&);
template <typename Struct>
std::unique_ptr<Plan> made(Recorder& recorder, const Limits& limits,
                           const std::map<std::string, Value>& names,
                           const std::map<std::string, std::string>& paths) {
  return std::make_unique<Struct>(recorder, limits, names, paths);
}
struct Case {
  Made plan;
  Macros macros;
  std::vector<Kernel> kernels;
  std::vector<std::pair<const char*, Buffer>> tensors;
  std::map<std::string, Value> names;
};
void show(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (!step.kernel) {
      std::printf("clear %d\\n", step.cleared);
      continue;
    }
    std::printf("%s %u %u %u  %u %u %u  %u %d", step.kernel->name, step.grid[0], step.grid[1],
                step.grid[2], step.block[0], step.block[1], step.block[2], step.shared_bytes,
                step.is_cooperative);
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      if (step.kernel->parameters[i].is_pointer) {
        std::printf(" %d", step.arguments[i].buffer);
      } else {
        std::printf(" ");
        const auto size = item_bytes(step.kernel->parameters[i].type);
        for (int at = 0; at < size; ++at) std::printf("%02x", step.arguments[i].bytes[at]);
      }
    }
    std::printf("\\n");
  }
}
void show(const Case& each) {
  const Limits limits{@LIMITS@};
  Recorder recorder(&each.kernels, limits);
  std::map<std::string, Value> names = each.names;
  std::map<std::string, std::string> paths;
  for (const auto& [path, tensor] : each.tensors) {
    names[tensor.name] = recorder.tensor(tensor.name, tensor.dtype, tensor.shape);
    if (*path) paths[path] = tensor.name;
  }
  if (names.count("out")) names.emplace("out0", names["out"]);
  const auto plan = each.plan(recorder, limits, names, paths);
  std::printf("macros %d\\n", plan->macros() == each.macros);
  plan->prepare();
  recorder.end_prepare();
  plan->launch();
  recorder.finish();
  for (const Buffer* buffer : recorder.buffers) {
    const char* kinds[] = {"tensor", "scratch", "prepared"};
    std::printf("%s %s", kinds[static_cast<int>(buffer->kind)], buffer->dtype.c_str());
    for (const auto size : buffer->shape) std::printf(" %lld", static_cast<long long>(size));
    std::printf("\\n");
  }
  show(recorder.prepare);
  std::printf("launch\\n");
  show(recorder.steps);
}
}  // namespace
int main() {
  const std::vector<Case> cases{@CASES@};
  for (const Case& each : cases) show(each);
}
"""


def cases() -> list[PlanCase]:
    """All plans that C++ can have."""
    found = [plan_case(t, CODE, "cuda", NAMES) for key, t in PLANS.items() if key != "library"]
    found.append(plan_case(ARITHMETIC, CODE, "cuda", NAMES))
    found.append(plan_case(PACKED, NUMBERS, "cuda", NAMES))
    return found


def lines(case: PlanCase) -> list[str]:
    """What the program prints of a case."""
    buffers, prepare, steps = case.bound
    found = ["macros 1"]
    found += [" ".join(map(str, (kind, dtype, *shape))) for kind, dtype, shape in buffers]
    return [*found, *map(step, prepare), "launch", *map(step, steps)]


def step(item: tuple[Any, ...]) -> str:
    if item[0] == "clear":
        return f"clear {item[1]}"
    kernel, grid, block, _, shared_bytes, cooperative, arguments = item
    shown = [a.hex() if isinstance(a, bytes) else str(a) for a in arguments]
    sizes = f"{' '.join(map(str, grid))}  {' '.join(map(str, block))}"
    return " ".join([kernel, f"{sizes} ", str(shared_bytes), str(int(cooperative)), *shown])


def case_text(case: PlanCase, struct: str) -> str:
    macros = (f"{{{c_string(name)}, {c_value(value)}}}" for name, value in case.macros.items())
    declared = (cpp_folder.kernel_text(k.name, kernel_declaration(k)) for k in case.signatures)
    tensors = (
        f"{{{c_string(t.path)}, {{Buffer::Kind::tensor, {c_string(t.name)}, {c_string(t.dtype)},"
        f" {{{', '.join(map(str, t.shape))}}}}}}}"
        for t in case.names.tensors
    )
    scalars = (f"{{{c_string(s.name)}, {c_value(s.value)}}}" for s in case.names.scalars)
    parts = (macros, declared, tensors, scalars)
    return f"{{made<{struct}>, {', '.join(map(cpp_folder.braces, parts))}}}"


@pytest.mark.slow
def test_the_struct_launches_what_the_interpreter_does(tmp_path: Path) -> None:
    found = cases()
    includes, parts = cpp_folder.runtime_parts()
    plans = [plan_struct(case.plan, f"Plan{i}", case.names, ()) for i, case in enumerate(found)]
    limits = (LIMITS.compute_units, LIMITS.sub_group_size, LIMITS.shared_bytes, LIMITS.max_block)
    main = MAIN.replace("@LIMITS@", ", ".join(map(c_value, limits))).replace(
        "@CASES@", ", ".join(case_text(case, f"Plan{i}") for i, case in enumerate(found))
    )
    text = "\n".join([*includes, "namespace {", *parts[:2], *plans, "}", main])
    Path(tmp_path, "plans.cpp").write_text(text)
    program = tmp_path / "plans"
    subprocess.run(
        ["c++", "-std=c++17", "-O0", "-w", str(tmp_path / "plans.cpp"), "-o", str(program)],
        check=True,
    )
    shown = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert shown.splitlines() == [line for case in found for line in lines(case)]


def test_library_calls_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"ops\.linear, which is torch's"):
        plan_struct(parse(PLANS["library"]), "Plan0", NAMES, ())


def test_what_cpp_leaves_in_no_order_is_refused() -> None:
    text = """
def stage(x, out):
    run[1, 1](x, x, out, 1, 1.0)
    return 1

def launch(x, w, out):
    n = stage(x, out) + stage(w, out)
    run[n, 1](x, w, out, n, 1.0)
"""
    with pytest.raises(InvalidArgumentError, match="which comes first"):
        plan_struct(parse(text), "Plan0", NAMES, ())
