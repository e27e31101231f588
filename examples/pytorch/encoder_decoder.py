"""A transformer whose decoder blocks all read the encoder's result: GPipe on four ranks.

What the encoder makes and what the decoder starts from are passed on over several stages.
"""

import torch
from torch import nn
from walk import walk

WIDTH, HEADS, LAYERS, ROWS, SOURCE, TARGET = 96, 4, 3, 4, 40, 24


class EncoderDecoder(nn.Module):
    """An encoder, and a decoder with attention to its result."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True) for _ in range(LAYERS)
        )
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True) for _ in range(LAYERS)
        )
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Take and give values of shape (rows, length, width)."""
        for block in self.encoder:
            source = block(source)
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        for block in self.decoder:
            target = block(target, source, tgt_mask=mask)
        return self.head(target)


def build() -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    """Give the model and the two inputs of one microbatch; the loss is the mean of the squares of the output."""
    torch.manual_seed(0)
    return EncoderDecoder(), (torch.randn(ROWS, SOURCE, WIDTH), torch.randn(ROWS, TARGET, WIDTH))


if __name__ == "__main__":
    walk(__file__, profile=["--schedule", "gpipe", "--devices", "4", "--microbatches", "4"])
