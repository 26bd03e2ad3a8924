"""A C++ library of a winner's kernels: header, source, test program and CMake file.

What is alike in all of them is in `cpp/`; the source holds those parts one after the other.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kernel_foundry.domain.admission import NamedTensor, TensorRole
from kernel_foundry.plan.dtypes import DTYPE_BYTES
from kernel_foundry.plan.from_admission import name_table
from kernel_foundry.sdk.export.c_text import c_comment, c_real, c_string, c_value
from kernel_foundry.sdk.export.call_sizes import FIXED, CallNumber, CallSizes
from kernel_foundry.sdk.export.function_file import check_gpu
from kernel_foundry.sdk.export.plan_struct import plan_struct
from kernel_foundry.sdk.export.torch_file import (
    is_deterministic,
    judged_times,
    kernel_declaration,
)
from kernel_foundry.sdk.export.winner import Winner

_FOLDER: Final = Path(__file__).with_name("cpp")
_PARTS: Final = ("value", "recorder", "driver", "kernels")
_C_TYPES: Final = {
    "float32": "float", "float64": "double", "int64": "int64_t", "int32": "int32_t",
    "int16": "int16_t", "int8": "int8_t", "uint64": "uint64_t", "uint32": "uint32_t",
    "uint16": "uint16_t", "uint8": "uint8_t",
}  # fmt: skip
"""Others are `void`: C has none."""
_RESERVED: Final = frozenset(
    {
        "alignas", "alignof", "and", "asm", "auto", "bitand", "bitor", "bool", "break",
        "case", "catch", "char", "class", "compl", "const", "constexpr", "continue",
        "decltype", "default", "delete", "do", "double", "else", "enum", "explicit",
        "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
        "int", "long", "mutable", "namespace", "new", "noexcept", "not", "nullptr",
        "operator", "or", "private", "protected", "public", "register", "restrict",
        "return", "short", "signed", "sizeof", "static", "struct", "switch", "template",
        "this", "throw", "true", "try", "typedef", "typeid", "typename", "union",
        "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor",
    }
)  # fmt: skip
_WORD_BYTES: Final = 8
_WORDS_OF_A_LINE: Final = 4

_HEADER: Final = """\
/* {task}: kernels for NVIDIA GPUs of the architecture {architecture} that Kernel Foundry found.

{figures}

They run through the CUDA driver, which is found when the program runs; {name}.cpp needs a C++17
compiler and no toolkit. All functions return 0, or 1 where something is wrong: {name}_error() says
what. Kernels run for sizes between those that were judged; there is no fall-back.

Tensors are contiguous, begin at a multiple of 256 bytes, and do not overlap. */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* The tensors of a call, on the GPU, and the sizes that are not always alike. */
typedef struct {name}_call {{
{members}
}} {name}_call;

/* The kernels on one GPU. They may be used by several threads, but for work in one stream at a
   time: open them once for each stream that runs them. */
typedef struct {name}_kernels {name}_kernels;

/* Opens a GPU, numbered as CUDA does, in its primary context, as the CUDA runtime has it. */
int {name}_open(int device, {name}_kernels** kernels);
{prepare}
/* Queues a call in a stream (cudaStream_t or CUstream). The first call of new sizes takes memory;
   later ones can be captured into a CUDA graph. */
int {name}_launch({name}_kernels* kernels, const {name}_call* call, void* stream);

/* What went wrong last in this thread. */
const char* {name}_error(void);

/* Gives back all memory; what was queued has to be complete. */
void {name}_close({name}_kernels* kernels);

#ifdef __cplusplus
}}
#endif
#endif
"""
_PREPARE: Final = """
/* Lays the weights out: before the first call, and whenever their values change. Of `call` the
   weights and the sizes are read. Calls whose weights have other sizes need it once more. */
int {name}_prepare({name}_kernels* kernels, const {name}_call* call, void* stream);
"""
_FUNCTIONS: Final = """\
extern "C" {{

int {name}_open(int device, {name}_kernels** kernels) {{
  return guarded([&] {{ *kernels = new {name}_kernels(device); }});
}}
{prepare}
int {name}_launch({name}_kernels* kernels, const {name}_call* call, void* stream) {{
  return guarded([&] {{ kernels->launch(reinterpret_cast<const Slot*>(call), stream); }});
}}
const char* {name}_error(void) {{ return last_error.c_str(); }}
void {name}_close({name}_kernels* kernels) {{ delete kernels; }}

}}  // extern "C"
"""
_PREPARE_FUNCTION: Final = """\
int {name}_prepare({name}_kernels* kernels, const {name}_call* call, void* stream) {{
  return guarded([&] {{ kernels->prepare(reinterpret_cast<const Slot*>(call), stream); }});
}}"""


def cpp_folder(
    _text: str, winners: Sequence[Winner], /, *, module: str, problem: str
) -> dict[str, str]:
    """Return the files of the library by their paths.

    Args:
        winners: Of one task; those that come first are tried first.
        module: Name of the library; its functions begin so.
        problem: Not used.

    Raises:
        InvalidArgumentError: the kernels are for the CPU, or a plan makes library calls.
    """
    del problem
    sizes = CallSizes(winners)
    return {
        **library_files(winners, sizes, module),
        f"test_{module}.cpp": _test(winners, sizes, module),
        "CMakeLists.txt": template("CMakeLists.txt", NAME=module),
        **evidence_files(winners),
    }


def library_files(winners: Sequence[Winner], sizes: CallSizes, name: str) -> dict[str, str]:
    """Return header and source.

    Raises:
        InvalidArgumentError: as `cpp_folder`.
    """
    check_gpu(winners, "a C++ library")
    return {
        f"{name}.h": _header(winners, sizes, name),
        f"{name}.cpp": _source(winners, sizes, name),
    }


def template(file: str, **values: str) -> str:
    """Return a file of `cpp/` with values in place of `@KEY@`."""
    text = (_FOLDER / file).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], text)


def evidence_files(winners: Sequence[Winner]) -> dict[str, str]:
    """Return the records of the verdicts, for `kfoundry verify`."""
    records = [json.dumps(w.record.to_plain(), indent=1, allow_nan=False) for w in winners]
    if len(records) == 1:
        return {"evidence.json": records[0] + "\n"}
    return {f"evidence_{i}.json": f"{record}\n" for i, record in enumerate(records)}


def has_prepare(winners: Iterable[Winner]) -> bool:
    """Return whether a plan lays weights out."""
    return any(winner.plan.prepare is not None for winner in winners)


def member(name: str) -> str:
    """Return the name of a tensor or a size in the struct of a call."""
    return f"{name}_" if name in _RESERVED else name


def c_type(tensor: NamedTensor) -> str:
    """Return the type of the pointer to a tensor."""
    const = "" if tensor.role is TensorRole.OUTPUT else "const "
    return f"{const}{_C_TYPES.get(tensor.dtype, 'void')}*"


def shape_text(sizes: CallSizes, tensor: NamedTensor) -> str:
    """Return a tensor's type and shape for a comment: "float32 [rows][64]"."""
    shape = (
        f"[{number.fixed if number.size == FIXED else member(sizes.names[number.size])}]"
        for number in sizes.shapes[tensor.name]
    )
    return f"{tensor.dtype} {''.join(shape)}".rstrip()


def _header(winners: Sequence[Winner], sizes: CallSizes, name: str) -> str:
    tensors = winners[0].workloads[0].tensors
    lines = [
        f"{c_type(t)} {member(t.name)}; /* {t.role.value}: {shape_text(sizes, t)} */"
        for t in tensors
    ]
    for size in sizes.names:
        kind = "double" if sizes.is_real(size) else "int64_t"
        lines.append(f"{kind} {member(size)}; /* {_ranges(winners, sizes, size)} */")
    return _HEADER.format(
        name=name,
        guard=f"{name.upper()}_H",
        task=c_comment(winners[0].record.task.name),
        architecture=c_comment(winners[0].admission.device.architecture),
        figures=c_comment(judged_times(winners)),
        members="\n".join(f"  {line}" for line in lines),
        prepare=_PREPARE.format(name=name) if has_prepare(winners) else "",
    )


def _ranges(winners: Sequence[Winner], sizes: CallSizes, name: str) -> str:
    pairs = dict.fromkeys(sizes.judged(name, winner) for winner in winners)
    return " or ".join(f"{least} to {largest}" for least, largest in pairs)


def _source(winners: Sequence[Winner], sizes: CallSizes, name: str) -> str:
    codes: list[bytes] = []
    plans = []
    specialisations = []
    for number, winner in enumerate(winners):
        workload = winner.workloads[0]
        names = name_table(workload.tensors, workload.scalars)
        struct = f"Plan{number}"
        plans.append(plan_struct(winner.plan, struct, names, winner.configuration))
        specialisations.append(_specialisation(winner, struct, sizes, codes))
    includes, parts = runtime_parts()
    device = winners[0].admission.device
    limits = (device.sub_group_size, device.shared_bytes, device.max_block)
    task = [
        c_string(device.architecture),
        *map(str, limits),
        braces(_tensor(tensor, sizes) for tensor in winners[0].workloads[0].tensors),
        braces(_scalar(key, value) for key, value in sizes.scalars.items()),
        braces(f"{{{c_string(s)}, {str(sizes.is_real(s)).lower()}}}" for s in sizes.names),
        braces(specialisations),
    ]
    prepare = _PREPARE_FUNCTION.format(name=name) if has_prepare(winners) else ""
    return "\n".join(
        [
            f"// The kernels of {name}.h with what runs them: launch plans as they were judged,",
            "// object code as it was built.",
            f'#include "{name}.h"\n',
            *includes,
            "\nnamespace {\n",
            *parts,
            "// Launch plans, as functions of sizes.\n",
            *(f"{plan}\n" for plan in plans),
            "template <typename Struct>",
            "std::unique_ptr<Plan> made(Recorder& recorder, const Limits& limits,",
            "                           const std::map<std::string, Value>& names,",
            "                           const std::map<std::string, std::string>& paths) {",
            "  return std::make_unique<Struct>(recorder, limits, names, paths);",
            "}\n",
            "// Object code.\n",
            *(_words(f"code{i}", code) for i, code in enumerate(codes)),
            "// What was judged.",
            "const Task& task() {",
            "  static const Task found{" + ",\n      ".join(task) + "};",
            "  return found;",
            "}\n",
            "}  // namespace\n",
            f"struct {name}_kernels : Kernels {{",
            f"  explicit {name}_kernels(int device) : Kernels(task(), device) {{}}",
            "};\n",
            _FUNCTIONS.format(name=name, prepare=prepare),
        ]
    )


def runtime_parts() -> tuple[list[str], list[str]]:
    """Return the system's headers that the parts include, and the parts without includes."""
    includes: set[str] = set()
    parts = []
    for part in _PARTS:
        text = (_FOLDER / f"{part}.hpp").read_text(encoding="utf-8")
        includes.update(re.findall(r"^#include <.*>$", text, re.MULTILINE))
        parts.append(re.sub(r"^#(include|pragma) .*\n", "", text, flags=re.MULTILINE))
    return sorted(includes), parts


def _specialisation(winner: Winner, struct: str, sizes: CallSizes, codes: list[bytes]) -> str:
    programs = []
    for program in winner.programs(winner.built):
        if program.code not in codes:
            codes.append(program.code)
        macros = braces(
            f"{{{c_string(n)}, {c_value(value)}}}" for n, value in program.macros.items()
        )
        code = f"code{codes.index(program.code)}"
        declared = braces(kernel_text(k.name, kernel_declaration(k)) for k in program.kernels)
        programs.append(f"{{{macros}, {code}, {declared}}}")
    ranges = (map(c_real, sizes.judged(name, winner)) for name in sizes.names)
    judged = braces(f"{{{', '.join(pair)}}}" for pair in ranges)
    return f"{{made<{struct}>, {judged}, {braces(programs)}}}"


def kernel_text(name: str, declaration: tuple[Any, ...]) -> str:
    """Return the `Kernel` of a declaration."""
    _, parameters, most_threads = declaration
    listed = (
        f"{{{c_string(parameter)}, {str(kind == 'pointer').lower()}, {c_string(element)}}}"
        for parameter, kind, element, _ in parameters
    )
    return f"{{{c_string(name)}, {most_threads or 0}, {braces(listed)}}}"


def _tensor(tensor: NamedTensor, sizes: CallSizes) -> str:
    role = {TensorRole.INPUT: "input", TensorRole.OUTPUT: "output"}.get(tensor.role, "weight")
    shape = braces(map(_number, sizes.shapes[tensor.name]))
    names = f"{c_string(tensor.name)}, {c_string(tensor.path)}"
    return f"{{{names}, Tensor::Role::{role}, {c_string(tensor.dtype)}, {shape}}}"


def _scalar(name: str, value: CallNumber | tuple[CallNumber, ...]) -> str:
    numbers = value if isinstance(value, tuple) else (value,)
    is_tuple = str(isinstance(value, tuple)).lower()
    return f"{{{c_string(name)}, {is_tuple}, {braces(map(_number, numbers))}}}"


def _number(number: CallNumber) -> str:
    return f"{{{c_value(number.fixed)}, {number.size}}}"


def braces(items: Iterable[str]) -> str:
    """Return a list of values."""
    return f"{{{', '.join(items)}}}"


def _words(name: str, code: bytes) -> str:
    whole = code + bytes(-len(code) % _WORD_BYTES)
    words = [
        f"0x{int.from_bytes(whole[i : i + _WORD_BYTES], 'little'):x}u"
        for i in range(0, len(whole), _WORD_BYTES)
    ]
    rows = [
        ", ".join(words[i : i + _WORDS_OF_A_LINE]) for i in range(0, len(words), _WORDS_OF_A_LINE)
    ]
    lines = ",\n  ".join(rows)
    return f"alignas(64) const unsigned long long {name}[] = {{\n  {lines}}};\n"


def _test(winners: Sequence[Winner], sizes: CallSizes, name: str) -> str:
    workload = winners[0].workloads[0]
    tensors = []
    arguments = []
    for i, tensor in enumerate(workload.tensors):
        count = 1
        for size in tensor.shape:
            count *= size
        is_output = str(tensor.role is TensorRole.OUTPUT).lower()
        values = (c_string(tensor.dtype), str(count), str(DTYPE_BYTES[tensor.dtype]), is_output)
        tensors.append(f"    {braces(values)},")
        kind = c_type(tensor)
        arguments.append(f"{member(tensor.name)} = reinterpret_cast<{kind}>(addresses[{i}]);")
    arguments += [f"{member(size)} = {sizes.value(size)!r};" for size in sizes.names]
    prepare = f"  check({name}_prepare(kernels, &arguments, stream));"
    values_of: Mapping[str, str] = {
        "NAME": name,
        "TENSORS": "\n".join(tensors),
        "DETERMINISTIC": str(is_deterministic(winners)).lower(),
        "ARGUMENTS": "\n".join(f"  arguments.{line}" for line in arguments),
        "PREPARE": prepare if has_prepare(winners) else "",
    }
    return template("test_program.cpp", **values_of)
