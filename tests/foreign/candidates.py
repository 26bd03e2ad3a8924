"""Foreign kernels for one small task: honest ones, and tricks."""

TASK = """
import torch
from torch import nn

rows = 48
cols = 160

class Model(nn.Module):
    def __init__(self, cols, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.eps = eps

    def forward(self, x):
        scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps)
        return x * scale * self.weight, scale

def get_inputs():
    return [torch.randn(rows, cols)]

def get_init_inputs():
    return [cols, 1e-5]
"""

_HEAD = """
import torch
from torch import nn

{before}

class ModelNew(nn.Module):
    def __init__(self, cols, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.eps = eps
        {init}

    def right(self, x):
        scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps)
        return x * scale * self.weight, scale

    def forward(self, x):
        {forward}
"""


def model(forward: str, *, before: str = "", init: str = "") -> str:
    """Return a file with a ModelNew that has the reference's parameters and results."""
    indented = "\n        ".join(forward.strip().splitlines())
    return _HEAD.format(before=before, init=init, forward=indented)


HONEST = {
    "a plain rewrite": model("return self.right(x)"),
    "in place on tensors of its own": model(
        "scale = (x * x).mean(-1, keepdim=True).add_(self.eps).rsqrt_()\n"
        "return (x * scale).mul_(self.weight), scale"
    ),
    "outputs that are views": model(
        "both = torch.empty(x.shape[1] + 1, x.shape[0])\n"
        "out, scale = self.right(x)\n"
        "both[:-1] = out.t(); both[-1:] = scale.t()\n"
        "return both[:-1].t(), both[-1:].t()"
    ),
    "a custom autograd function": model(
        "return Scaled.apply(x, self.weight, self.eps)",
        before="""
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, scale)
        return x * scale * weight, scale
""",
    ),
    "scripted by torch.jit": model(
        "return scaled(x, self.weight, self.eps)",
        before="""
@torch.jit.script
def scaled(x, weight, eps: float):
    scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
    return x * scale * weight, scale
""",
    ),
    "work on parameters done once": model(
        "if self.doubled is None:\n"
        "    self.doubled = self.weight.double()\n"
        "scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps)\n"
        "return (x * scale * self.doubled).float(), scale",
        init="self.doubled = None",
    ),
}

TRANSPOSED_TASK = """
import torch
from torch import nn

rows = 4

class Model(nn.Module):
    def forward(self, x):
        return (x * 2).permute(2, 0, 1), (x[..., :9] - 1).permute(2, 0, 1)

def get_inputs():
    return [torch.randn(rows, 128, 1024)]
"""

TRANSPOSED = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return (x * 2).permute(2, 0, 1), (x[..., :10] - 1).permute(2, 0, 1)[:9]
"""
"""The first output without gaps, the second with: neither in the order of its shape."""

COMPILED = model(
    "return scaled(x, self.weight, self.eps)",
    before="""
@torch.compile(backend="eager", dynamic=True)
def scaled(x, weight, eps):
    scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
    return x * scale * weight, scale
""",
)

# Without torch's headers, which take the compiler half a minute.
INLINE = model(
    "out, scale = torch.empty_like(x), torch.empty(x.shape[0], 1)\n"
    "at = [ctypes.c_void_p(t.data_ptr()) for t in (x, self.weight, out, scale)]\n"
    "library.scaled(*at, *map(ctypes.c_long, x.shape), ctypes.c_float(self.eps))\n"
    "return out, scale",
    before="""
import ctypes
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <cmath>
extern "C" void scaled(const float* x, const float* weight, float* out, float* scale, long rows,
                       long cols, float eps) {
  for (long row = 0; row < rows; ++row, x += cols, out += cols) {
    double sum = 0;
    for (long i = 0; i < cols; ++i) sum += double(x[i]) * x[i];
    scale[row] = float(1 / std::sqrt(sum / cols + eps));
    for (long i = 0; i < cols; ++i) out[i] = x[i] * scale[row] * weight[i];
  }
}
'''
library = ctypes.CDLL(load_inline(
    name="scaled", cpp_sources=SOURCE, is_python_module=False, no_implicit_headers=True
))
""",
)

# Each attempt has to fail; who gets through gives a result that is wrong.
LOCKED = model(
    "out, scale = self.right(x)\nreturn out + len(got), scale",
    before="""
import os, signal, socket, subprocess, sys
got = []

def attempt(what, step):
    try:
        step()
    except (OSError, ImportError):
        return
    got.append(what)

package = next(p for p in sys.path if os.path.exists(p + "/evaluator_svc/judge/judge.py"))
attempt("the parent killed", lambda: os.kill(os.getppid(), signal.SIGKILL))
attempt("a group killed", lambda: os.killpg(os.getpgid(os.getppid()), 0))
attempt("our code written", lambda: open(package + "/evaluator_svc/judge/judge.py", "a"))
attempt("our code moved", lambda: os.rename(package + "/evaluator_svc/judge", package + "/x"))
attempt("shared memory", lambda: open("/dev/shm/x", "w"))
attempt("the parent's files", lambda: os.listdir(f"/proc/{os.getppid()}/fd"))
attempt("the parent's memory", lambda: open(f"/proc/{os.getppid()}/mem", "rb"))
attempt("a socket", lambda: socket.socket())
attempt("a session", os.setsid)
attempt("attributes", lambda: os.chmod("/tmp", 0o777))
attempt("our judge", lambda: __import__("evaluator_svc.judge.judge"))

def through_a_program():
    tried = f"kill -0 {os.getppid()} || ls /root || echo x > /tmp/x"
    ended = subprocess.run(["/bin/sh", "-c", tried], stderr=subprocess.DEVNULL)
    if ended.returncode:
        raise OSError

attempt("any of it by a program", through_a_program)
got += [n for n in sys.modules if n.partition(".")[0] in ("evaluator_svc", "kernel_foundry")]
""",
)

LEFT_BEHIND = "318.25"
"""Seconds that a program sleeps which a candidate leaves behind; also what it is found by."""

TRICKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "time functions are patched": (
        model("return self.right(x)", before="import time\ntime.perf_counter = lambda: 0.0"),
        ("rejected",),
    ),
    "code is replaced in place": (
        model(
            "return self.right(x)",
            before="torch.testing.assert_close.__code__ = (lambda *a, **k: None).__code__",
        ),
        ("rejected",),
    ),
    "each call is told to it": (
        model(
            "return self.right(x)",
            before="import sys\nsys.setprofile(lambda *_: None)",
        ),
        ("rejected",),
    ),
    "CUDA's events are patched": (
        model(
            "return self.right(x)",
            before="torch.cuda.Event.elapsed_time = lambda *_: 0.0\n"
            "torch.cuda.synchronize = lambda *_: None",
        ),
        ("rejected",),
    ),
    "comparison is patched": (
        model("return x * 1.0, x[:, :1] * 1.0", before="torch.allclose = lambda *a, **k: True"),
        ("wrong_result",),
    ),
    "answers are remembered by address": (
        model(
            "key = x.data_ptr()\n"
            "if key not in known:\n"
            "    known[key] = self.right(x)\n"
            "    keys.append(x)\n"
            "return tuple(t.clone() for t in known[key])",
            before="known, keys = {}, []",
        ),
        ("wrong_result", "rejected"),
    ),
    "answers are remembered by shape": (
        model(
            "if x.shape not in known: known[x.shape] = self.right(x)\n"
            "return tuple(t.clone() for t in known[x.shape])",
            before="known = {}",
        ),
        ("wrong_result",),
    ),
    "the same tensor is returned again": (
        model(
            "if not self.held: self.held = self.right(x)\n"
            "for t, new in zip(self.held, self.right(x)): t.copy_(new)\n"
            "return self.held",
            init="self.held = ()",
        ),
        ("rejected",),
    ),
    "the result is constant": (
        model("return torch.zeros_like(x), torch.ones(x.shape[0], 1)"),
        ("wrong_result",),
    ),
    "the reference is looked for": (
        model(
            "return reference(self.weight.numel(), self.eps)(x)",
            before="""
import gc, glob, sys
found = [o for o in gc.get_objects() if isinstance(o, type) and o.__name__ == "Model"]
found += [m.Model for m in sys.modules.values() if isinstance(getattr(m, "Model", 0), type)]
for path in glob.glob("/tmp/**/*.py", recursive=True):
    try:
        text = open(path).read()
    except OSError:
        continue
    if "class Model(" in text and "kernel.py" not in path: exec(text, globals()); found += [Model]
reference = found[0]
""",
        ),
        ("compile_error",),
    ),
    "memory is returned as it was found": (
        model("return torch.empty_like(x), torch.empty(x.shape[0], 1)"),
        ("wrong_result", "nondeterministic"),
    ),
    "work goes on in a thread": (
        model(
            "out, scale = torch.zeros_like(x), torch.zeros(x.shape[0], 1)\n"
            "def work():\n"
            "    time.sleep(0.002)\n"
            "    for into, new in zip((out, scale), self.right(x)): into.copy_(new)\n"
            "threading.Thread(target=work).start()\n"
            "return out, scale",
            before="import threading, time",
        ),
        ("rejected", "wrong_result"),
    ),
    "an input is changed": (
        model("out = self.right(x)\nx.zero_()\nreturn out"),
        ("wrong_result",),
    ),
    "float16 is computed": (
        model("return tuple(t.float() for t in self.right(x.half()))"),
        ("wrong_result",),
    ),
    "the timed shape is a special case": (
        model(
            "out = self.right(x)\n"
            "return out if x.shape == (48, 160) else tuple(torch.zeros_like(t) for t in out)"
        ),
        ("wrong_result",),
    ),
    "an output is a view of the input": (
        model("return x.mul_(1.0), self.right(x)[1]"),
        ("rejected",),
    ),
    "the result is lazy": (
        model(
            "out, scale = self.right(x)\nreturn out.as_subclass(Lazy), scale",
            before="class Lazy(torch.Tensor): pass",
        ),
        ("rejected",),
    ),
    "memory is exhausted": (model("return bytearray(1 << 44)"), ("launch_error",)),
    "the process ends itself": (model("import os; os._exit(0)"), ("crashed",)),
    "a parameter is missing": (
        model("return self.right(x)", init="self.weight = torch.ones(cols)"),
        ("plan_error", "compile_error"),
    ),
    "a program is left behind": (
        model(
            "return 1",
            before="import subprocess\n"
            f"subprocess.Popen(['/bin/sleep', '{LEFT_BEHIND}'], process_group=0)",
        ),
        ("rejected",),
    ),
    "the work is done when its outputs are asked for": (
        model(
            "return self.right(x) if not timing else later(self, x)",
            before="""
import gc, time

(session,) = (o for o in gc.get_objects() if type(o).__name__ == "ForeignSession")
kind, timing, left = type(session), [], []
time_, keep_ = kind.time, kind.keep

def timed(self, request):
    timing.append(1)
    left.clear()
    try:
        return time_(self, request)
    finally:
        timing.clear()

def kept(self, request):
    for model, x, into in left[-1:]:
        time.sleep(0.2)
        for place, new in zip(into, model.right(x)): place.copy_(new)
    return keep_(self, request)

def later(model, x):
    into = torch.empty_like(x), torch.empty(x.shape[0], 1)
    left.append((model, x.clone(), into))
    return into

kind.time, kind.keep = timed, kept
""",
        ),
        ("rejected",),
    ),
    "it works until its warm calls were timed": (
        model(
            "if warm: return torch.zeros_like(x), torch.zeros(x.shape[0], 1)\nreturn self.right(x)",
            before="""
import gc

(session,) = (o for o in gc.get_objects() if type(o).__name__ == "ForeignSession")
kind, warm = type(session), []
time_ = kind.time

def timed(self, request):
    if request.call_count == 1 and request.flush_bytes == 0: warm.append(1)
    return time_(self, request)

kind.time = timed
""",
        ),
        ("wrong_result",),
    ),
    "its outputs are said to lie in another order": (
        model(
            "return self.right(x)",
            before="""
import dataclasses, gc

(session,) = (o for o in gc.get_objects() if type(o).__name__ == "ForeignSession")
honest = type(session).keep

def turned(self, request):
    return dataclasses.replace(honest(self, request), orders=((1, 0), (0, 1)))

type(session).keep = turned
""",
        ),
        ("wrong_result",),
    ),
    "its samples are forged": (
        model(
            "time.sleep(0.003)\nreturn self.right(x)",
            before="""
import dataclasses, gc, time

(session,) = (o for o in gc.get_objects() if type(o).__name__ == "ForeignSession")
honest = type(session).time

def forged(self, request):
    times = honest(self, request)
    return dataclasses.replace(times, samples_ns=tuple(5e4 for _ in times.samples_ns))

type(session).time = forged
""",
        ),
        ("rejected",),
    ),
}
