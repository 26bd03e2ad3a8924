"""Launches through an exported file's CUDA part; run by `tests/native/test_cuda_fake_driver.py`.

The driver's path is the only argument. With a driver that has no GPU, device memory is the host's.
"""

import ctypes
import struct
import sys
import threading
from typing import Any

import numpy as np
import torch
from torch import nn

import kernel_foundry_native as native
from kernel_foundry.sdk.export.runtime import cuda
from kernel_foundry.sdk.export.runtime import known_call as known_calls
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
    cuda.current_queue = lambda _index: stream.value  # type: ignore[misc]
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
    device.is_host = False  # type: ignore[misc]  # which it was for a while
    check_calls_at_once(driver, device, program, launch)
    check_weights(driver, device, program, launch)


def check_known_calls(
    driver: cuda.Driver, device: cuda.GpuDevice, program: ctypes.c_void_p, launch: Launch
) -> None:
    """Calls like one before, of a plan of one launch on the tensors of `runtime.task`."""
    x, longer = torch.arange(300, dtype=torch.float32), torch.ones(301)
    buffers = tuple(Buffer("tensor", name, "float32", (300,)) for name in ("x", "out"))
    device.alignment = 64  # type: ignore[misc]  # that of torch's tensors on a CPU
    sequence = Sequence(buffers, (), (launch,))
    call = bound(device, program, sequence, x)
    place = {"factor": 3.0}
    module = watched([place], [])
    assert module is not None
    asked: list[int] = []

    def current_device() -> int:
        asked.append(int(not asked))
        return asked[-1]

    torch._C._cuda_getDevice = current_device
    stream = ctypes.c_void_p()
    known_calls.current_queue = lambda _index: stream.value  # type: ignore[misc,attr-defined]
    known = known_call(call, [x], [], module)
    assert known is not None
    for _ in range(2):
        driver.call("cuStreamCreate", ctypes.byref(stream), 1)
        result = known(x)
        driver.call("cuStreamSynchronize", stream)
        print("known:", torch.equal(result, 3 * x))
    print("asked which device is the current one:", asked)
    try:
        known(longer[1:])
    except NoKernelError as error:
        print("no kernel:", error)
    print("unknown:", known(x[:200]), known(x.double()), known(x.expand(2, 300)))
    place["factor"] = 4.0
    print("changed:", known(x))
    # A plan with memory of its own between two launches.
    own = (*buffers, Buffer("scratch", "", "float32", (300,)))
    to_own, from_own = (
        launch._replace(arguments=(*places, *launch.arguments[2:])) for places in ((0, 2), (2, 1))
    )
    sequence = Sequence(own, (), (to_own, from_own))
    call = bound(device, program, sequence, x)
    module = watched([place], [])
    assert module is not None
    known = known_call(call, [x], [], module)
    assert known is not None
    result = known(x)
    driver.call("cuStreamSynchronize", stream)
    print("through its own memory:", torch.equal(result, 9 * x))
    # The same with a library call; a host keeps such memory from call to call.
    device.is_host = True  # type: ignore[misc]
    negated = LibraryCall(torch.neg, (Operand(0),), {}, 2)
    call = bound(device, program, Sequence(own, (), (negated, from_own)), x)
    module = watched([place], [])
    assert module is not None
    known = known_call(call, [x], [], module)
    assert known is not None
    result = known(x)
    driver.call("cuStreamSynchronize", stream)
    print("with a library call:", torch.equal(result, -3 * x))


def own_queue(driver: cuda.Driver) -> ctypes.c_void_p:
    """A stream that calls go to from now on."""
    stream = ctypes.c_void_p()
    driver.call("cuStreamCreate", ctypes.byref(stream), 1)
    known_calls.current_queue = lambda _index: stream.value  # type: ignore[misc,attr-defined]
    cuda.current_queue = known_calls.current_queue  # type: ignore[misc,attr-defined]
    known_calls._maker.cache_clear()  # what was made before asks the other function
    return stream


def check_calls_at_once(
    driver: cuda.Driver, device: cuda.GpuDevice, program: ctypes.c_void_p, launch: Launch
) -> None:
    """Calls of one plan within one another, as of a signal's handler, and of several threads."""
    stream, x = own_queue(driver), torch.arange(300, dtype=torch.float32)
    buffers = tuple(Buffer("tensor", name, "float32", (300,)) for name in ("x", "out"))
    call = bound(device, program, Sequence(buffers, (), (launch,)), x)
    module = watched([{"factor": 3.0}], [])
    assert module is not None
    row = call.steps[0]
    start, within = row.start, []

    def interrupted(*arguments: Any) -> int:
        """Another call begins when all arguments of this one are in their places."""
        if not within:
            within.append(2 * x)
            within.append(run(within[0]))
        return int(start(*arguments))

    row.start = interrupted
    known = known_call(call, [x], [], module)
    assert known is not None
    for run in (known, lambda x: call.results([x])[0]):
        within.clear()
        result = run(x)
        driver.call("cuStreamSynchronize", stream)
        print("within another one:", torch.equal(result, 3 * x), torch.equal(within[1], 6 * x))
    row.start = start
    known = known_call(call, [x], [], module)
    assert known is not None
    found: list[tuple[torch.Tensor, torch.Tensor]] = []

    def work(own: torch.Tensor) -> None:
        found.extend((own, known(own)) for _ in range(100))

    threads = [threading.Thread(target=work, args=(x + i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    driver.call("cuStreamSynchronize", stream)
    print("threads:", len(found), all(torch.equal(result, 3 * own) for own, result in found))


def check_weights(
    driver: cuda.Driver, device: cuda.GpuDevice, program: ctypes.c_void_p, launch: Launch
) -> None:
    """A weight that changes or moves, read as it is or as it was laid out."""
    stream = own_queue(driver)
    buffers = tuple(Buffer("tensor", name, "float32", (300,)) for name in ("weight", "out"))
    laid_out = Buffer("prepared", "", "float32", (300,))
    lay_out, from_it = (
        launch._replace(arguments=(*places, *launch.arguments[2:])) for places in ((0, 2), (2, 1))
    )
    for sequence, factor in (
        (Sequence(buffers, (), (launch,)), 3),
        (Sequence((*buffers, laid_out), (lay_out,), (from_it,)), 9),
    ):
        x, weight = torch.zeros(300), nn.Parameter(torch.rand(300), requires_grad=False)
        call = bound(device, program, sequence, x, weight)
        module = watched([{"factor": 3.0}], [])
        assert module is not None
        known = known_call(call, [x], [weight], module)
        assert known is not None
        right = []
        for change in (0.0, 0.0, 1.0, 0.0):
            weight.add_(change)
            result = known(x)
            driver.call("cuStreamSynchronize", stream)
            right.append(torch.allclose(result, factor * weight))
        weight.data = weight + 1
        print("weights:", *right, known(x))


def bound(
    device: cuda.GpuDevice, program: ctypes.c_void_p, sequence: Sequence, *tensors: torch.Tensor
) -> BoundCall:
    names = ("x", "weight")[: len(tensors)]
    outputs = (("out", (300,), "float32"),)
    return BoundCall(
        device,
        program,
        sequence,
        Layouts(),
        list(tensors),
        names,
        outputs,
        is_deterministic=True,
    )


main(sys.argv[1])
