#!/usr/bin/env python3
"""Writes tests/golden/precision.golden: how far PyTorch's gradients in 16 bits are from those in double precision.

    python scripts/golden/precision.py      after make_golden.py, whose gpt.golden has model, batch and weights

Rounding noise has no exact value to be held against, but it has a size: another program that computes in the same
formats must not make more of it. "distance" in the file's JSON maps a precision (of src/core/precision.cpp) to the norm
of the error of the first step's gradient, all tensors together, in parts of the gradient's norm.
"""

import json
import math
import pathlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import make_golden

SCALE = 1024.0  # of the loss where fp16 takes part


def read_golden(path):
    line, data = path.read_bytes().split(b"\n", 1)
    header = json.loads(line)
    tensors = {}
    for name, entry in header["tensors"].items():
        count = math.prod(entry["shape"])
        tensors[name] = np.frombuffer(data, entry["dtype"], count, entry["offset"]).reshape(entry["shape"])
    return header, tensors


def gradients(model, initial, batch, dtype, scale=1.0, norms=None, autocast=None):
    """dtype: of the weights; norms: of the norms' weights, with the norms computed in it; autocast: of the products."""

    def format_of(name):
        return norms if norms is not None and ".ln_" in "." + name else dtype

    weights = {name: nn.Parameter(torch.tensor(value).to(format_of(name))) for name, value in initial.items()}
    layer_norm = F.layer_norm
    if norms is not None:
        F.layer_norm = lambda x, *rest: layer_norm(x.to(norms), *rest).to(x.dtype)
    try:
        with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
            loss = make_golden.gpt_loss(model, weights, batch)
        (loss.float() * scale).backward()
    finally:
        F.layer_norm = layer_norm
    return {name: weight.grad.double().numpy() / scale for name, weight in weights.items()}


def main():
    folder = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
    torch.set_num_threads(1)
    header, tensors = read_golden(folder / "gpt.golden")
    model = header["model"]
    initial = {name[len("initial/"):]: value for name, value in tensors.items() if name.startswith("initial/")}
    exact = {name: tensors["gradient64/" + name] for name in initial}
    batch = {name: torch.tensor(tensors[name]).long() for name in ("tokens", "targets")}

    half, brain, single = torch.float16, torch.bfloat16, torch.float32
    cases = {
        "fp32": dict(dtype=single),
        "bf16": dict(dtype=brain),
        "fp16": dict(dtype=half, scale=SCALE),
        "O2": dict(dtype=half, scale=SCALE, norms=single),
        "O1": dict(dtype=single, scale=SCALE, autocast=half),
        "autocast_bf16": dict(dtype=single, autocast=brain),
    }
    size = math.sqrt(sum(float((value**2).sum()) for value in exact.values()))
    distances = {}
    for name, options in cases.items():
        made = gradients(model, initial, batch, **options)
        error = math.sqrt(sum(float(((made[tensor] - exact[tensor]) ** 2).sum()) for tensor in exact))
        distances[name] = error / size
        print(f"{name}: {error / size:.3e}")
    make_golden.GoldenWriter({"scale": SCALE, "distance": distances}).write(folder / "precision.golden")


if __name__ == "__main__":
    main()
