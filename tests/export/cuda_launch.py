"""Launches through an exported file's CUDA part; run by `tests/native/test_cuda_fake_driver.py`.

The driver's path is the only argument. With a driver that has no GPU, device memory is the host's.
"""

import ctypes
import struct
import sys

import numpy as np

import kernel_foundry_native as native
from kernel_foundry.sdk.export.runtime import cuda
from kernel_foundry.sdk.export.runtime.plan import Launch, NoKernelError
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
    row.start(stream.value or 0, addresses)
    driver.call("cuStreamSynchronize", stream)
    print("right:", bool((out == 3 * x).all()))
    for wrong in (
        launch._replace(kernel="scales"),
        launch._replace(block=(2048, 1, 1)),
        launch._replace(shared_bytes=1 << 20),
    ):
        try:
            device.bind(program, (wrong,), 2).start(stream.value or 0, addresses)
        except NoKernelError as error:
            print("no kernel:", error)
    try:
        device.load(b"no cubin at all")
    except NoKernelError as error:
        print("not loaded:", error)


main(sys.argv[1])
