"""Which settings of torch's TF32 an exported file's library calls run under."""

import subprocess
import sys

import pytest

CODE = """
import sys
import torch
from torch.nn import functional
from kernel_foundry.sdk.export.runtime import tf32
from kernel_foundry.sdk.export.runtime.plan import LibraryCall, NoKernelError

def said(*functions):
    try:
        tf32.check_tf32([LibraryCall(f, (), {}, 0) for f in functions])
    except NoKernelError as error:
        return str(error)
    return "runs"

products, convolution = (functional.linear, torch.matmul), functional.conv2d
def show():
    print(said(*products), said(convolution), said(), sep="; ")

show()
torch.backends.cudnn.allow_tf32 = False
torch.backends.cuda.matmul.allow_tf32 = True
show()
torch.backends.cuda.matmul.fp32_precision = "ieee"
torch.backends.cudnn.conv.fp32_precision = "tf32"
show()
tf32.TF32 = True
show()
"""


@pytest.mark.slow
def test_products_and_convolutions_have_a_switch_each() -> None:
    child = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines() == [
        "runs; torch's TF32 is on for convolutions; runs",
        "torch's TF32 is on for products; runs; runs",
        "runs; torch's TF32 is on for convolutions; runs",
        "torch's TF32 is off for products; runs; runs",
    ]
