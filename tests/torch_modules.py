"""Small PyTorch modules to capture, each with what makes it hard; needs torch."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Attention and a feed-forward part with residuals; attention as a function."""

    def __init__(self, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(self.first(values)).chunk(3, dim=-1)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        values = values + self.dropout(self.out(mixed))
        return values + self.feed(self.second(values))


class Gpt(nn.Module):
    """Token and position embeddings, blocks, and a head tied to the embedding."""

    def __init__(self, width: int = 16, blocks: int = 3, words: int = 32, dropout: float = 0.0) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(16, width)
        self.h = nn.ModuleList(Block(width, dropout) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.wte.weight
        self.register_buffer("positions", torch.arange(16))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        values = self.wte(tokens) + self.wpe(self.positions[: tokens.shape[1]])
        for block in self.h:
            values = block(values)
        result: torch.Tensor = self.head(self.norm(values))
        return result


class Residual(nn.Module):
    """Convolutions with batch norm and ReLU in place around a residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        inner = functional.relu(self.norm(self.first(values)), inplace=True)
        return functional.relu_(values + self.second(inner))


class ResNet(nn.Module):
    """A stem, residual blocks and a head."""

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.layer1 = nn.Sequential(Residual(channels), Residual(channels))
        self.head = nn.Linear(channels, 5)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.layer1(self.stem(values)).mean((2, 3)))
        return result


class EncoderDecoder(nn.Module):
    """A decoder all of whose blocks read the encoder's result, and that reads an input of its own."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.encoder = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.decoder = nn.ModuleList(nn.Bilinear(width, width, width) for _ in range(2))
        self.start = nn.Linear(width, width)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        for part in self.encoder:
            source = torch.tanh(part(source))
        target = self.start(target)
        for part in self.decoder:
            target = torch.relu(part(source, target))
        return target


class Reuse(nn.Module):
    """One module called twice, with another between."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.rep, self.mid = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.rep(torch.relu(self.mid(torch.relu(self.rep(values)))))
        return result


class Masked(nn.Module):
    """A mask and a rotary table that all blocks read, made anew in every forward pass."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.h = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        length, device = values.shape[1], values.device
        mask = torch.full((length, length), float("-inf"), device=device)
        mask.triu_(1)
        with torch.no_grad():
            angles = torch.arange(length, device=device)[:, None] * torch.ones(values.shape[-1], device=device)
            table = angles.cos()
        for part in self.h:
            turned = part(values) * table
            values = values + torch.softmax(turned @ turned.transpose(1, 2) + mask, -1) @ turned
        return values


class Sorted(nn.Module):
    """Whole numbers and truth values that later operations read, and labels that only the loss reads."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.words, self.inner, self.head = nn.Embedding(9, width), nn.Linear(width, width), nn.Linear(width, 9)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values = self.words(tokens)
        order = values.sum(-1).argsort(-1)
        values = torch.relu(self.inner(values)).gather(1, order[..., None].expand_as(values))
        return self.head(torch.where((tokens > 2)[..., None], values, 0.5 * values)), labels


class Layouts(nn.Module):
    """Views, permuted and strided tensors, a branch that depends on weights alone, and several outputs."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.offset = nn.Parameter(torch.randn(width))
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, values: torch.Tensor, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        batch, length, width = values.shape
        query, key, value = self.qkv(values).view(batch, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        mixed = (query @ key.transpose(-1, -2)).softmax(-1) @ value
        values = self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        turned = torch.tanh(values.transpose(0, 1))
        flat = turned.transpose(0, 1).reshape(batch * length, width)
        image = functional.gelu(self.conv(image.to(memory_format=torch.channels_last)))
        return flat[::2] + self.offset.expand(batch * length // 2, width), self.offset.exp() * 3, image


class Filled(nn.Module):
    """Tensors that need a gradient, or have their shape, only after something was written to them."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.first, self.second, self.third, self.last = (nn.Linear(width, width) for _ in range(4))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        values = self.first(values)
        filled = torch.zeros_like(values)
        filled[:, :3] = values[:, :3]
        filled[:, 3:] = self.second(values)[:, 3:]
        turned = 2 * values
        turned.unsqueeze_(1)
        result: torch.Tensor = self.last(self.third(filled) + filled + turned.sum(1))
        return result


class Spectral(nn.Module):
    """Complex numbers, some of them left to be conjugated, and their parts; a complex weight that is read twice."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.scale = nn.Parameter(torch.randn(width // 2 + 1, dtype=torch.complex64))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(self.first(values))
        turned = spectrum.conj()
        values = torch.tanh(self.second(values))
        scaled = turned * self.scale
        slope = scaled[:1, :1].conj().imag
        return values * slope + torch.fft.irfft(scaled.conj() * self.scale, n=values.shape[1])


class Scaled(nn.Module):
    """Buffers that a gradient still needs when the next microbatch writes to them: themselves, in place and viewed."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.register_buffer("scale", torch.full((2, width), 2.0))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        values = self.first(values)
        self.scale.mul_(0.9).add_(values.detach().abs().mean(0), alpha=0.1)
        more = torch.tanh(self.second(values * self.scale[0]))
        result: torch.Tensor = (more + values).mul_(self.scale.mean()) * self.scale.sum(0)
        return result


class Noisy(nn.Module):
    """Dropout and noise, a batch norm that runs twice, counters, and values written in place."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(width, width) for _ in range(3))
        self.norm, self.dropout = nn.BatchNorm1d(width), nn.Dropout(0.3)
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        values = self.first(values)
        self.seen += 1
        self.mean.mul_(0.9).add_(values.detach().mean(0), alpha=0.1)
        values = self.dropout(functional.relu(self.norm(values), inplace=True))
        more = self.second(values)
        more += values
        values = self.norm(self.third(self.dropout(more).sigmoid_()))
        return values + 0.1 * torch.randn_like(values)


class Nested(nn.Module):
    """Inputs and outputs in dictionaries and lists, with a number and nothing among them."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, values: dict[str, Any], scale: float, nothing: None) -> dict[str, Any]:
        result = self.second(torch.relu(self.first(values["x"])) * scale)
        return {"sum": [result + values["y"][0]], "mean": result.mean()}


def sorted_case() -> tuple[nn.Module, tuple[Any, ...], Callable[[Any], torch.Tensor]]:
    """Give a module with a loss that reads labels from the inputs."""

    def loss(outputs: Any) -> torch.Tensor:
        scores, labels = outputs
        return functional.cross_entropy(scores.flatten(0, 1), labels.flatten())

    return Sorted(), (torch.randint(0, 9, (3, 5)), torch.randint(0, 9, (3, 5))), loss


def tokens() -> tuple[torch.Tensor, ...]:
    """Give two short texts."""
    return (torch.arange(16).reshape(2, 8) % 7,)


def frozen_gpt() -> nn.Module:
    """Give a GPT whose embeddings and first block are not trained."""
    module = Gpt()
    for part in (module.wte, module.wpe, module.h[0]):
        part.requires_grad_(False)
    return module


CASES: dict[str, Callable[[], tuple[nn.Module, tuple[Any, ...]]]] = {
    "gpt": lambda: (Gpt(), tokens()),
    "dropout": lambda: (Gpt(dropout=0.1), tokens()),
    "frozen": lambda: (frozen_gpt(), tokens()),
    "resnet": lambda: (ResNet(), (torch.randn(2, 3, 6, 6),)),
    "encoder_decoder": lambda: (EncoderDecoder(), (torch.randn(2, 8), torch.randn(2, 8))),
    "reuse": lambda: (Reuse(), (torch.randn(2, 8),)),
    "masked": lambda: (Masked(), (torch.randn(2, 5, 8),)),
    "evaluation": lambda: (Gpt(dropout=0.1).eval(), tokens()),
}
"""Modules with their inputs, by what they show."""


def moved_to_meta(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[nn.Module, tuple[Any, ...]]:
    """Give a module and its inputs on the meta device."""
    return module.to("meta"), tuple(each.to("meta") for each in inputs)


TRAINED: dict[str, Callable[[], tuple[Any, ...]]] = {
    **CASES,
    "sorted": sorted_case,
    "layouts": lambda: (Layouts(), (torch.randn(2, 4, 8), torch.randn(2, 3, 5, 5))),
    "noisy": lambda: (Noisy(), (torch.randn(5, 6),)),
    "filled": lambda: (Filled(), (torch.randn(4, 6),)),
    "scaled": lambda: (Scaled(), (torch.randn(4, 6),)),
    "complex": lambda: (Spectral(), (torch.randn(4, 6),)),
    "nested": lambda: (Nested(), ({"x": torch.randn(4, 8), "y": [torch.randn(4, 8)]}, 2.0, None)),
    "packed": lambda: (
        nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        (torch.randn(2, 4, 8), torch.randn(2, 3, 8)),
    ),
    "bfloat16": lambda: (Gpt().to(torch.bfloat16), tokens()),
    "bfloat16_resnet": lambda: (ResNet().to(torch.bfloat16), (torch.randn(2, 3, 6, 6).to(torch.bfloat16),)),
}
"""The same and more, with a loss where they have one: all that stages must compute as the whole does."""
