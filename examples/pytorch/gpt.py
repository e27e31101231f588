"""A small GPT whose head is tied to its embedding, with dropout: 1F1B on three ranks, two of which hold that weight."""

import torch
from torch import nn
from torch.nn import functional
from walk import walk

WIDTH, HEADS, BLOCKS, WORDS, LENGTH, ROWS = 128, 4, 6, 512, 64, 4


class Block(nn.Module):
    """Causal attention and a feed-forward part, each with a norm before it, dropout and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_feed = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.dropout = nn.Dropout(0.1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Take and give values of shape (rows, length, width)."""
        rows, length, _ = values.shape
        qkv = self.qkv(self.before_attention(values)).view(rows, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        values = values + self.dropout(self.mix(mixed.transpose(1, 2).reshape(rows, length, WIDTH)))
        return values + self.dropout(self.feed(self.before_feed(values)))


class Gpt(nn.Module):
    """Embeddings of words and places, blocks, a norm and the head."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Take tokens of shape (rows, length); give the scores of each next word, and the words there are."""
        values = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            values = block(values)
        return self.head(self.norm(values)), tokens


def loss(outputs: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Give the mean cross-entropy of the next words."""
    scores, tokens = outputs
    return functional.cross_entropy(scores[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def build() -> tuple[nn.Module, tuple[torch.Tensor], object]:
    """Give the model, the tokens of one microbatch, and the loss."""
    torch.manual_seed(0)
    return Gpt(), (torch.randint(WORDS, (ROWS, LENGTH)),), loss


if __name__ == "__main__":
    walk(__file__, profile=["--devices", "3", "--microbatches", "6"])
