#!/usr/bin/env python3
"""PyTorch's side of the speed comparison: trains a GPT of GPT-2's form on random tokens and prints one line of JSON.

    python scripts/bench/pytorch_gpt.py --preset char --dtype bf16 --threads 2

Needs torch. The models are those of configs/bench/; compare_pytorch.sh runs both programs in turn. bf16 and fp16 are
autocast over fp32 weights, as PyTorch's own recipes have it (fp16 with its loss scaler).
"""

import argparse
import contextlib
import json
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

PRESETS = {
    "char": dict(layers=6, heads=6, width=384, length=256, vocabulary=65, batch=16, learning_rate=1e-3),
    "124m": dict(layers=12, heads=12, width=768, length=1024, vocabulary=50304, batch=1, learning_rate=6e-4),
}
UNTIMED_STEPS = 3  # the first ones allocate, compile and warm up


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
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)  # the tied head
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_optimizer(parameters, learning_rate):
    options = dict(lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.1)
    try:
        return torch.optim.AdamW(parameters, fused=True, **options), True
    except (RuntimeError, TypeError):  # older ones have no fused AdamW on CPUs
        return torch.optim.AdamW(parameters, **options), False


def main():
    parser = argparse.ArgumentParser(description="Speed of training a GPT with PyTorch on the CPU.")
    parser.add_argument("--preset", choices=PRESETS, default="char")
    parser.add_argument("--dtype", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--threads", type=int, help="default: PyTorch's own choice")
    parser.add_argument("--steps", type=int, default=20, help=f"steps to run, the first {UNTIMED_STEPS} not timed")
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    arguments = parser.parse_args()
    if arguments.steps <= UNTIMED_STEPS:
        parser.error(f"--steps must be above {UNTIMED_STEPS}")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(1234)

    preset = dict(PRESETS[arguments.preset])
    batch, learning_rate = preset.pop("batch"), preset.pop("learning_rate")
    model = Gpt(**preset)
    parameters = list(model.parameters())
    optimizer, fused = make_optimizer(parameters, learning_rate)
    loss_of = torch.compile(model) if arguments.compile else model
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, enabled=arguments.dtype == "fp16")

    def precision():
        if arguments.dtype == "fp32":
            return contextlib.nullcontext()
        return torch.autocast("cpu", dtype={"bf16": torch.bfloat16, "fp16": torch.float16}[arguments.dtype])

    seconds, last_loss = [], None
    for _ in range(arguments.steps):
        tokens = torch.randint(preset["vocabulary"], (batch, preset["length"] + 1))
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with precision():
            loss = loss_of(tokens[:, :-1], tokens[:, 1:])
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(optimizer)
        scaler.update()
        last_loss = loss.item()
        seconds.append(time.perf_counter() - start)

    print(json.dumps({
        "preset": arguments.preset,
        "dtype": arguments.dtype,
        "threads": torch.get_num_threads(),
        "compile": arguments.compile,
        "fused": fused,
        "torch": torch.__version__,
        "parameters": sum(parameter.numel() for parameter in parameters),
        "steps": arguments.steps,
        "loss": last_loss,
        "tokens_per_second": batch * preset["length"] / statistics.median(seconds[UNTIMED_STEPS:]),
        "peak_resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))


if __name__ == "__main__":
    main()
