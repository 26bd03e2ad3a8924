"""Kernels in a model of your own.

kfoundry export softmax -o fast_softmax.py
python use_torch.py
"""

import torch
from fast_softmax import Module, stats
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(256, 4096), Module()).to(device)
x = torch.randn(64, 256, device=device)
with torch.no_grad():
    shares = model(x)
    torch.testing.assert_close(shares, torch.softmax(model[0](x), dim=-1))
loss = model(x).square().sum()  # gradients are the reference's
loss.backward()
print(stats())
