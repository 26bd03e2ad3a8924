"""A ResNet-18 for 64 images of 224 x 224, float32, at inference."""

import torch
from torch import nn

from benchmarks.end_to_end.norm_add_relu import NormAddRelu
from benchmarks.end_to_end.norm_relu import NormRelu


class Block(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm_first = NormRelu(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm_second = NormAddRelu(outputs)
        self.shortcut = (
            nn.Identity()
            if stride == 1 and inputs == outputs
            else nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the feature maps one block on."""
        y = self.norm_first(self.first(x))
        result: torch.Tensor = self.norm_second(self.second(y), self.shortcut(x))
        return result


class ResNet(nn.Module):
    """Stem, four stages, and a classifier of 1000 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.norm = NormRelu(64)
        self.pool = nn.MaxPool2d(3, 2, 1)
        widths = ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))
        self.stages = nn.Sequential(
            *(nn.Sequential(Block(i, o, s), Block(o, o, 1)) for i, o, s in widths)
        )
        self.classes = nn.Linear(512, 1000)
        for part in self.modules():
            if isinstance(part, nn.BatchNorm2d):
                # As after training, and not 0 and 1.
                buffers = dict(part.named_buffers())
                nn.init.normal_(buffers["running_mean"], 0.0, 0.1)
                nn.init.uniform_(buffers["running_var"], 0.5, 1.5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return scores (images, 1000)."""
        maps = self.stages(self.pool(self.norm(self.stem(images))))
        scores: torch.Tensor = self.classes(maps.mean((2, 3)))
        return scores


def get_inputs() -> list[torch.Tensor]:
    """Return images."""
    return [torch.randn(64, 3, 224, 224)]
