"""Launches through an exported file's CUDA part; run by `tests/native/test_cuda_fake_driver.py`.

The driver's path is the only argument. With a driver that has no GPU, device memory is the host's.
"""

import ctypes
import struct
import sys

import numpy as np
import torch

import kernel_foundry_native as native
from kernel_foundry.sdk.export.runtime import cuda
from kernel_foundry.sdk.export.runtime.bound_call import BoundCall
from kernel_foundry.sdk.export.runtime.known_call import known_call, watched
from kernel_foundry.sdk.export.runtime.layouts import Layouts
from kernel_foundry.sdk.export.runtime.plan import (
    Buffer,
    Launch,
    LibraryCall,
    NoKernelError,
    Operand,
    Sequence,
)
from tests.native.cuda_case import KERNELS, SOURCE


def main(path: str) -> None:
    driver = cuda.Driver((path,))
    try:
        cuda.GpuDevice(driver, 0)
    except NoKernelError as error:
        print("refused:", error)
    cuda.ARCHITECTURE = sys.argv[2]  # type: ignore[misc]  # an exported file has its own
    device = cuda.GpuDevice(driver, 0)
    compiler = native.device_kind("cuda").open_compiler(architecture=sys.argv[2])
    built = compiler.compile(source=SOURCE, options=[], kernels=KERNELS)
    program = device.load(built.code)
    x = np.arange(300, dtype=np.float32)
    out = np.zeros_like(x)
    arguments = (0, 1, struct.pack("<f", 3.0), struct.pack("<i", x.size))
    launch = Launch("scale", (3, 1, 1), (128, 1, 1), 3, 0, False, arguments)
    row = device.bind(program, (launch, launch), 2)
    stream = ctypes.c_void_p()
    driver.call("cuStreamCreate", ctypes.byref(stream), 1)
    addresses = [x.ctypes.data, out.ctypes.data]
    cuda.current_queue = lambda _index: stream.value  # type: ignore[assignment]
    row.run(*addresses)
    driver.call("cuStreamSynchronize", stream)
    print("right:", bool((out == 3 * x).all()))
    for wrong in (
        launch._replace(kernel="scales"),
        launch._replace(block=(2048, 1, 1)),
        launch._replace(shared_bytes=1 << 20),
    ):
        try:
            device.bind(program, (wrong,), 2).run(*addresses)
        except NoKernelError as error:
            print("no kernel:", error)
    try:
        device.load(b"no cubin at all")
    except NoKernelError as error:
        print("not loaded:", error)
    check_known_calls(driver, device, program, launch)


def check_known_calls(
    driver: cuda.Driver, device: cuda.GpuDevice, program: ctypes.c_void_p, launch: Launch
) -> None:
    """Calls like one before, of a plan of one launch on the tensors of `runtime.task`."""
    x, longer = torch.arange(300, dtype=torch.float32), torch.ones(301)
    buffers = tuple(Buffer("tensor", name, "float32", (300,)) for name in ("x", "out"))
    device.alignment = 64  # type: ignore[misc]  # that of torch's tensors on a CPU
    sequence = Sequence(buffers, (), (launch,))
    call = BoundCall(device, program, sequence, Layouts(), [x], (((300,), "float32"),))
    place = {"factor": 3.0}
    module = watched([place], [])
    assert module is not None
    asked: list[bool] = []

    def is_current() -> bool:
        asked.append(len(asked) != 0)
        return asked[-1]

    device.is_current = is_current  # type: ignore[method-assign]
    known = known_call(call, [x], [], module, tuple)
    assert known is not None
    for _ in range(2):
        stream = ctypes.c_void_p()
        driver.call("cuStreamCreate", ctypes.byref(stream), 1)
        cuda.current_queue = lambda _index, queue=stream.value: queue  # type: ignore[assignment]
        result = known(x)
        driver.call("cuStreamSynchronize", stream)
        print("known:", torch.equal(result, 3 * x))
    print("asked whether the device is the current one:", asked)
    try:
        known(longer[1:])
    except NoKernelError as error:
        print("no kernel:", error)
    print("unknown:", known(x[:200]), known(x.double()), known(x.expand(2, 300)))
    place["factor"] = 4.0
    print("changed:", known(x))
    # A plan with memory of its own and a library call; a host keeps such memory from call to call.
    device.is_host = True  # type: ignore[misc]
    own = (*buffers, Buffer("scratch", "", "float32", (300,)))
    negated = LibraryCall(torch.neg, (Operand(0),), {}, 2, is_new=False)
    from_own = launch._replace(arguments=(2, *launch.arguments[1:]))
    call = BoundCall(
        device,
        program,
        Sequence(own, (), (negated, from_own)),
        Layouts(),
        [x],
        (((300,), "float32"),),
    )
    module = watched([place], [])
    assert module is not None
    known = known_call(call, [x], [], module, tuple)
    assert known is not None
    result = known(x)
    driver.call("cuStreamSynchronize", stream)
    print("with a library call:", torch.equal(result, -3 * x))


main(sys.argv[1])
