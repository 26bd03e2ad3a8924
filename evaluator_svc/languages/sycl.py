"""SYCL on a host's cores: SPIR-V that the device's driver builds, timed by the host's clock."""

from typing import Final

from evaluator_svc.languages.backend import LanguageBackend, Toolchain
from kernel_foundry.domain.language import Language


def _toolchain() -> Toolchain:
    import kernel_foundry_native as native
    from kernel_foundry_native.sycl_headers import header_option, with_all_headers

    blocks = f"-I{native.blocks_include_path(Language.SYCL.value)}"
    return Toolchain(
        prelude=native.prelude(Language.SYCL.value),
        # Without assertions: they would print.
        options_of=lambda code: ("-DNDEBUG", blocks, header_option(code)),
        safe_options=with_all_headers,
    )


SYCL: Final = LanguageBackend(
    language=Language.SYCL,
    device_kinds=("sycl", "null"),
    runs_on_host_cores=True,
    toolchain=_toolchain,
    depends_on_driver=True,
    object_reader="evaluator_svc.inspector.inspect:inspect_spirv_object",
    headers=frozenset({"CL/sycl.hpp"}),
    header_folders=("kf/", "sycl/"),
    headers_hint="kf/… (our blocks), sycl/… and standard headers such as cmath, cstdint, limits",
    rules=frozenset(
        {
            "object.assembly",
            "object.device_launch",
            "object.forged_pointer",
            "object.function_pointer",
            "object.pipe",
            "source.assembly",
        }
    ),
    clock="host's steady clock, first submit to completion",
    is_timed_by_events=False,
    # A host's memory and cores may have been busy when their rates were measured.
    believed_share=0.75,
    arithmetic_margin=2.0,
    # For 256 KiB a transposition with indices by division took 20 times as long, one by tiles 3.
    layout_traffic_multiple=16.0,
    # A first launch with cold caches took 50 us where a warm one takes 3.
    layout_launches=32.0,
    has_tf32=False,
    has_warps=False,
)
