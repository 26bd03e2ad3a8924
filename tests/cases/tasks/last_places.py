"""Where each id is last, -1 where it is nowhere."""

import torch
from torch import nn

count = 4096
ids = 8192


class Model(nn.Module):
    """Where each id is last, -1 where it is nowhere."""

    def __init__(self, ids: int) -> None:
        super().__init__()
        self.ids = ids

    def forward(self, id: torch.Tensor) -> torch.Tensor:  # noqa: A002
        places = torch.arange(id.numel(), device=id.device)
        return torch.full((self.ids,), -1, device=id.device).scatter_reduce(0, id, places, "amax")


def get_inputs():
    return [torch.randint(0, ids, (count,))]


def get_init_inputs():
    return [ids]
