"""A residual network with batch norm, in operations: zb_v with two stages on each of two ranks.

Every operation may end a stage, also inside a residual block; running statistics live where they are updated.
"""

import torch
from torch import nn
from torch.nn import functional
from walk import walk

CHANNELS, BLOCKS, SIDE, ROWS, CLASSES = 16, 4, 24, 8, 10


class Residual(nn.Module):
    """Two convolutions with batch norm, and ReLU in place, around a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        self.second = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        self.after_first, self.after_second = nn.BatchNorm2d(CHANNELS), nn.BatchNorm2d(CHANNELS)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Take and give values of shape (rows, channels, side, side)."""
        inner = functional.relu(self.after_first(self.first(values)), inplace=True)
        return functional.relu(values + self.after_second(self.second(inner)))


class ResNet(nn.Module):
    """A stem, residual blocks and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.blocks = nn.Sequential(*(Residual() for _ in range(BLOCKS)))
        self.head = nn.Linear(CHANNELS, CLASSES)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Take images of shape (rows, 3, side, side) and their classes; give the scores of all classes, and those."""
        return self.head(self.blocks(self.stem(images)).mean((2, 3))), labels


def loss(outputs: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Give the mean cross-entropy."""
    return functional.cross_entropy(*outputs)


def build() -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor], object]:
    """Give the model, the images and labels of one microbatch, and the loss."""
    torch.manual_seed(0)
    return ResNet(), (torch.randn(ROWS, 3, SIDE, SIDE), torch.randint(CLASSES, (ROWS,))), loss


if __name__ == "__main__":
    walk(
        __file__,
        profile=["--depth", "operations", "--schedule", "zb_v", "--devices", "2", "--microbatches", "4"],
    )
