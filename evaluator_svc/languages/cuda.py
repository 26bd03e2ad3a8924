"""CUDA C++ on NVIDIA GPUs: NVRTC, PTX and cubins, timed by events."""

from typing import Final

from evaluator_svc.languages.backend import LanguageBackend, Toolchain
from kernel_foundry.domain.language import Language


def _toolchain() -> Toolchain:
    import kernel_foundry_native as native

    # Without assertions: they would print, and leave a device in an error.
    folders = (native.blocks_include_path(Language.CUDA.value), *native.cuda_include_paths())
    options = ("-DNDEBUG", *(f"-I{folder}" for folder in folders))
    return Toolchain(prelude=native.prelude(Language.CUDA.value), options_of=lambda _: options)


CUDA: Final = LanguageBackend(
    language=Language.CUDA,
    device_kinds=("cuda",),
    runs_on_host_cores=False,
    toolchain=_toolchain,
    depends_on_driver=False,
    object_reader="evaluator_svc.inspector.inspect:inspect_cubin",
    headers=frozenset(
        {
            *("cooperative_groups.h", "cuComplex.h", "cuda.h", "cuda_awbarrier.h"),
            *("cuda_awbarrier_primitives.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_fp4.h"),
            *("cuda_fp6.h", "cuda_fp8.h", "cuda_pipeline.h", "cuda_pipeline_primitives.h"),
            *("cuda_runtime.h", "cuda_runtime_api.h", "cuda_tf32.h", "device_atomic_functions.h"),
            *("device_functions.h", "device_launch_parameters.h", "math_constants.h"),
            *("math_functions.h", "mma.h", "sm_30_intrinsics.h", "vector_functions.h"),
            "vector_types.h",
        }
    ),
    header_folders=(
        *("cooperative_groups/", "crt/", "cub/", "cuda/", "cute/", "cutlass/", "kf/"),
        *("nv/", "thrust/"),
    ),
    headers_hint="kf/… (our blocks), cub/…, cuda/std/…, cute/…, cutlass/…, cuda_fp16.h, mma.h and "
    "standard headers such as cstdint",
    rules=frozenset(
        {
            "object.assert",
            "object.cache_hint",
            "object.device_runtime",
            "object.discard",
            "object.foreign_memory",
            "object.heap",
            "object.launch_counter",
            "object.processor_id",
            "object.sleep",
            "source.assembly_directive",
        }
    ),
    clock="device events around a call, less what a pair of events itself takes",
    is_timed_by_events=True,
    believed_share=0.95,
    arithmetic_margin=1.25,
    # A plain transposition writes a sector of 32 bytes for each float.
    layout_traffic_multiple=8.0,
    layout_launches=4.0,
    has_tf32=True,
    has_warps=True,
)
