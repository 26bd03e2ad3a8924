"""Starts judges: their environment, their folders, and the template they are forked from."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

from evaluator_svc.baseline_names import COMPILED
from evaluator_svc.cache.disk_cache import make_private
from evaluator_svc.processes.forking import JUDGE
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.template import Environment, SharedTemplate, TemplateKind
from evaluator_svc.sandbox.host_paths import own_variables, package_root
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.scratch import scratch_folder

_COMPILED: Final = "TORCHINDUCTOR_CACHE_DIR"
_TRITON: Final = "TRITON_CACHE_DIR"
"""Folders in which torch.compile keeps compiled code and runs it."""
_PASSED_ON: Final = (
    "PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "CC", "CXX", "XDG_CACHE_HOME",
    "TRITON_PTXAS_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
    "OMP_WAIT_POLICY",
)  # fmt: skip
"""What a judge gets of the environment: what torch.compile needs, and no key or token."""
_DEVICE_VARIABLES: Final = ("KERNEL_FOUNDRY_CUDA_DRIVER", "KERNEL_FOUNDRY_NVRTC")
"""As well, of those that a template need not have."""


class JudgeStarter:
    """Starts the judges of one evaluator.

    Args:
        settings: Threads, deadlines, baselines and the folder of caches.
    """

    def __init__(self, settings: EvaluatorSettings) -> None:
        self._settings = settings
        kind = TemplateKind(
            module=JUDGE,
            environment=_environment(settings),
            with_compiler=any(name in COMPILED for name in settings.baselines),
            meets_candidates=False,
        )
        self._shared = SharedTemplate(kind)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge-imports")
        self._imports: Future[None] | None = None

    def warm_up(self) -> None:
        """Have everything imported that judges need, in the background."""
        # A failure is met again, and raised, by the first start.
        self._imports = self._thread.submit(self._shared.template.warm_up)

    def wait(self) -> None:
        """Return once nothing is imported any more."""
        if self._imports is not None:
            wait([self._imports])

    def start(self, device: DeviceSpec) -> JudgeClient:
        """Start the judge of a device.

        Raises:
            ProcessLostError: it does not start; torch may be missing.
        """
        settings = self._settings
        # Compilers under torch.compile leave files behind when they are killed.
        scratch = scratch_folder("judge")
        variables = {
            "TMPDIR": scratch.name,
            **_compiled_code(settings),
            **own_variables(_DEVICE_VARIABLES),
        }
        for name in (_COMPILED, _TRITON):
            if name in variables:
                make_private(Path(variables[name]), name)
        try:
            process = self._shared.template.start(tuple(variables.items()))
        except BaseException:
            scratch.cleanup()
            raise
        process.scratch = scratch
        return JudgeClient(
            process,
            device=device,
            threads=settings.thread_count,
            baselines=settings.baselines,
            baseline_seconds=settings.baseline_seconds,
            answer_seconds=settings.judge_seconds,
            admission_seconds=settings.admission_seconds,
        )

    def close(self) -> None:
        """End the template, also while it starts, unless another evaluator of this process uses it.

        No judge can be started any more; called again it changes nothing.
        """
        self._shared.close()
        self._thread.shutdown(cancel_futures=True)


def _compiled_code(settings: EvaluatorSettings) -> dict[str, str]:
    """Return where compiled code is kept: in our own cache unless the user says otherwise."""
    folders = {_COMPILED: str(settings.cache_dir.absolute() / "inductor")}
    return folders | own_variables((_COMPILED, _TRITON))


def _environment(settings: EvaluatorSettings) -> Environment:
    threads = str(settings.thread_count)
    variables = {
        **own_variables(_PASSED_ON),
        "PYTHONPATH": package_root(),
        "OMP_NUM_THREADS": threads,
        # A pool of compiler processes would outlive the compilation and disturb every timing.
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        # Torch keeps these beside temporary files, which end with the judge: each would take the
        # compiler five seconds for one that saves a second for each kernel.
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
        "DPCPP_CPU_NUM_CUS": threads,
    }
    return tuple(variables.items())
