"""A candidate, its parent and a differ that the tests of replies share."""

from difflib import SequenceMatcher

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language

DEVICE_CODE = """\
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scale(const float* x, float* out, int count, float by) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i >= count) {
    return;
  }
  out[i] = by * x[i];
}"""
PLAN = """\
TUNE = {"BLOCK": [128, 256]}


def launch(x, out):
    count = x.numel()
    scale[cdiv(count, BLOCK), BLOCK](x, out, count, 2.0)"""
CUDA_CODE = 'extern "C" __global__ void scale(const float* x, float* out, int count, float by) {}'

PARENT = KernelSource(language=Language.SYCL, device_code=DEVICE_CODE, plan=PLAN)
FASTER = DEVICE_CODE.replace("by * x[i]", "by * sycl::fabs(x[i])")
"""Device code of a child."""


def device_block(code: str = DEVICE_CODE, fence: str = "```", word: str = "sycl") -> str:
    return f"{fence}{word}\n{code}\n{fence}\n"


def plan_block(plan: str = PLAN, fence: str = "```", word: str = "python") -> str:
    return f"{fence}{word}\n{plan}\n{fence}\n"


def edit(search: str, replacement: str) -> str:
    return edit_of_lines(*(text.split("\n") if text else [] for text in (search, replacement)))


def edit_of_lines(search: list[str], replacement: list[str]) -> str:
    marked = ["<<<<<<< SEARCH", *search, "=======", *replacement, ">>>>>>> REPLACE", ""]
    return "\n".join(marked)


def edits_between(before: KernelSource, after: KernelSource) -> str:
    """Return edits that make `after` of `before`, each with as much context as it needs."""
    everything = [before.device_code.split("\n"), before.plan.split("\n")]
    return "".join(
        edit_of_lines(old, new)
        for lines, changed in zip(everything, (after.device_code, after.plan), strict=True)
        for old, new in _hunks(lines, changed.split("\n"), everything)
    )


def _hunks(
    old: list[str], new: list[str], everything: list[list[str]]
) -> list[tuple[list[str], list[str]]]:
    """Return what gives way to what; where context makes neighbours meet, they are one."""
    steps = _steps(old, new)
    spans: list[tuple[int, int]] = []
    for at, (ours, theirs) in enumerate(steps):
        if ours == theirs:
            continue
        first, last = at, at + 1
        while not _is_found_once(_joined(steps[first:last])[0], everything):
            if first > 0 and (last - at > at - first or last == len(steps)):
                first -= 1
            else:
                last += 1
        while spans and first < spans[-1][1]:
            before = spans.pop()
            first, last = min(first, before[0]), max(last, before[1])
        spans.append((first, last))
    return [_joined(steps[first:last]) for first, last in spans]


def _steps(old: list[str], new: list[str]) -> list[tuple[list[str], list[str]]]:
    """Return what stays, line by line, and what changes, as pairs of old and new lines."""
    steps = []
    for tag, a, b, c, d in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if tag == "equal":
            steps += [([line], [line]) for line in old[a:b]]
        else:
            steps.append((old[a:b], new[c:d]))
    return steps


def _joined(steps: list[tuple[list[str], list[str]]]) -> tuple[list[str], list[str]]:
    return [line for ours, _ in steps for line in ours], [line for _, its in steps for line in its]


def _is_found_once(wanted: list[str], everything: list[list[str]]) -> bool:
    places = sum(
        lines[at : at + len(wanted)] == wanted
        for lines in everything
        for at in range(len(lines) - len(wanted) + 1)
    )
    return places == 1 and any(line.strip() for line in wanted)
