"""KernelBench's `ModelNew`, called as its evaluation does.

kfoundry export softmax --to kernelbench -o level_1_problem_23_sample_0_kernel.py
python use_kernelbench.py
"""

import torch
from level_1_problem_23_sample_0_kernel import ModelNew, NoKernelError

device = "cuda" if torch.cuda.is_available() else "cpu"
model = ModelNew().to(device)
x = torch.randn(64, 4096, device=device)
with torch.no_grad():
    torch.testing.assert_close(model(x), torch.softmax(x, dim=-1))
    try:
        model(x.double())
    except NoKernelError as error:
        print("no reference runs in place of a kernel:", error)
