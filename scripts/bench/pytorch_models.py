"""The models that PyTorch trains in the speed comparisons: GPT-2's form, and an MLP without biases. Needs torch."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

# Those of configs/bench/.
PRESETS = {
    "char": dict(layers=6, heads=6, width=384, length=256, vocabulary=65),
    "124m": dict(layers=12, heads=12, width=768, length=1024, vocabulary=50304),
    "tiny": dict(layers=2, heads=2, width=64, length=32, vocabulary=65),
}
LEARNING_RATES = {"char": 1e-3, "124m": 6e-4, "tiny": 1e-3}


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        count, length, width = x.shape
        qkv = self.qkv(x).view(count, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # [B, H, T, D] each
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(count, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.outer(F.gelu(self.inner(self.norm_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, heads, width, length, vocabulary):
        super().__init__()
        self.recomputes = False  # a block's activations in the backward pass
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recomputes else block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)  # the tied head
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Mlp(nn.Module):
    """Two linear layers without biases or activation, and the mean of squared errors."""

    def __init__(self, inputs=512, width=512):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, width, bias=False), nn.Linear(width, 1, bias=False))

    def forward(self, features, targets):
        return F.mse_loss(self.layers(features), targets)


def make_optimizer(parameters, learning_rate):
    options = dict(lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.1)
    try:
        return torch.optim.AdamW(parameters, fused=True, **options), True
    except (RuntimeError, TypeError):  # older ones have no fused AdamW on CPUs
        return torch.optim.AdamW(parameters, **options), False
