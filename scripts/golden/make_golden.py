#!/usr/bin/env python3
"""Writes the numbers that zerotrain's tests are held against: tests/golden/*.golden, computed by PyTorch.

Run by hand, in a virtual environment outside the repository that has torch and numpy:

    python scripts/golden/make_golden.py [--deepspeed path/to/deepspeed/runtime/lr_schedules.py]

With --deepspeed the learning rates come from DeepSpeed's own schedulers (that one file, taken from an unpacked source
archive), and are checked against the formulas below; without it they come from the formulas alone.

A .golden file is one line of JSON, then raw little-endian numbers. "tensors" in the JSON maps a name to its dtype
(float32, float64, int32), shape and offset in bytes after the line. tests/golden_file.h reads it.

What is in the file of a model (RUN is adamw, adam, sgd or sgd_clipped; the batch is the same one in every step):

    tokens, targets            [B, T], targets -1 where the loss does not count; or features [B, F] with targets [B] (classes) or [B, outputs]
    initial/NAME               float32 weights; Linear weights are [out, in]
    gradient/NAME              of the first step, PyTorch in float32;  gradient64/NAME: in float64
    loss/RUN, loss64/RUN       [steps], before each update;  norm/RUN, norm64/RUN: the gradients' norms before clipping
    final/RUN/NAME, final64/RUN/NAME   weights after the last step, for some runs
    header "distance": {"gradient" or RUN: {NAME: {"largest", "rms", "rms_of_value"}}}: how far PyTorch's float32 is
    from its float64, the yardstick for any other float32 program

mixed_precision.golden has the steps of configs/mixed_precision.json from the weights that zerotrain starts with, in
fp16 and, as a yardstick, in fp32 (loss32, norm32, weights32): write_mixed_precision below.

The biases of keys (the middle third of attn.c_attn.bias) have a gradient of 0, as softmax does not see them; what
float32 leaves there instead is noise, which Adam blows up to whole steps: leave that part out of comparisons
after Adam.
"""

import argparse
import csv
import importlib.util
import json
import math
import pathlib
import sys
import types

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SEED = 20240607
RUNS = {
    "adamw": dict(type="AdamW", lr=1e-3, betas=[0.9, 0.999], eps=1e-8, weight_decay=0.1),
    "adam": dict(type="Adam", lr=1e-3, betas=[0.9, 0.999], eps=1e-8, weight_decay=0.01),  # coupled decay
    "sgd": dict(type="SGD", lr=0.1, momentum=0.9, weight_decay=0.0),
    "sgd_clipped": dict(type="SGD", lr=0.1, momentum=0.9, weight_decay=0.0, clipping=0.5),
}


class GoldenWriter:
    """Collects named arrays and writes the file described above."""

    def __init__(self, header):
        self.header = dict(header, tensors={})
        self.chunks = []
        self.size = 0

    def add(self, name, values):
        values = np.ascontiguousarray(values)
        assert values.dtype.name in ("float32", "float64", "int32"), (name, values.dtype)
        data = values.astype(values.dtype.newbyteorder("<")).tobytes()
        entry = {"dtype": values.dtype.name, "shape": list(values.shape), "offset": self.size}
        self.header["tensors"][name] = entry
        self.chunks.append(data)
        self.size += len(data)

    def write(self, path):
        line = json.dumps(self.header, separators=(",", ":")).encode() + b"\n"
        path.write_bytes(line + b"".join(self.chunks))
        print(f"{path}: {len(line) + self.size} bytes")


# --- models: functions of a dictionary of weights, so that float32 and float64 share every line ----------------------


def activate(name, x):
    if name == "gelu_new":
        return F.gelu(x, approximate="tanh")
    if name == "identity":
        return x
    return {"gelu": F.gelu, "relu": F.relu, "silu": F.silu, "tanh": torch.tanh}[name](x)


def gpt_shapes(m):
    width, inner = m["n_embd"], m["n_inner"] or 4 * m["n_embd"]
    shapes = {"wte.weight": (m["vocab_size"], width), "wpe.weight": (m["n_positions"], width)}

    def norm(name):
        shapes[name + ".weight"] = (width,)
        if m["bias"]:
            shapes[name + ".bias"] = (width,)

    def linear(name, outputs, inputs):
        shapes[name + ".weight"] = (outputs, inputs)
        if m["bias"]:
            shapes[name + ".bias"] = (outputs,)

    for layer in range(m["n_layer"]):
        norm(f"h.{layer}.ln_1")
        linear(f"h.{layer}.attn.c_attn", 3 * width, width)
        linear(f"h.{layer}.attn.c_proj", width, width)
        norm(f"h.{layer}.ln_2")
        linear(f"h.{layer}.mlp.c_fc", inner, width)
        linear(f"h.{layer}.mlp.c_proj", width, inner)
    norm("ln_f")
    if not m["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (m["vocab_size"], width)
    return shapes


def gpt_loss(m, w, batch):
    tokens, targets = batch["tokens"], batch["targets"]
    count, length = tokens.shape
    heads, width = m["n_head"], m["n_embd"]
    size = width // heads

    def norm(name, x):
        return F.layer_norm(x, (width,), w[name + ".weight"], w.get(name + ".bias"), m["layer_norm_epsilon"])

    def linear(name, x):
        return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))

    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    x = w["wte.weight"][tokens] + w["wpe.weight"][:length]
    for layer in range(m["n_layer"]):
        h = f"h.{layer}."
        qkv = linear(h + "attn.c_attn", norm(h + "ln_1", x)).view(count, length, 3, heads, size)
        q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))  # [B, H, T, D]
        scores = (q @ k.transpose(2, 3) / math.sqrt(size)).masked_fill(future, -math.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(count, length, width)
        x = x + linear(h + "attn.c_proj", mixed)
        inner = activate(m["activation_function"], linear(h + "mlp.c_fc", norm(h + "ln_2", x)))
        x = x + linear(h + "mlp.c_proj", inner)
    head = w["wte.weight"] if m["tie_word_embeddings"] else w["lm_head.weight"]
    logits = norm("ln_f", x) @ head.T
    return F.cross_entropy(logits.view(-1, m["vocab_size"]), targets.view(-1), ignore_index=-1)


def mlp_shapes(m):
    shapes = {}
    for i, (inputs, outputs) in enumerate(zip(m["layers"], m["layers"][1:])):
        shapes[f"layers.{i}.weight"] = (outputs, inputs)
        if m["bias"]:
            shapes[f"layers.{i}.bias"] = (outputs,)
    return shapes


def mlp_loss(m, w, batch):
    x = batch["features"]
    last = len(m["layers"]) - 2
    for i in range(last + 1):
        x = F.linear(x, w[f"layers.{i}.weight"], w.get(f"layers.{i}.bias"))
        if i < last:
            x = activate(m["activation"], x)
    if m["loss"] == "cross_entropy":
        return F.cross_entropy(x, batch["targets"])
    return F.mse_loss(x, batch["targets"])


# --- training --------------------------------------------------------------------------------------------------------


def initial_weights(shapes, deviation, random):
    weights = {}
    for name, shape in shapes.items():
        values = random.normal(0.0, deviation, shape)
        if ".ln_" in name or name.startswith("ln_"):
            values = values + (1.0 if name.endswith(".weight") else 0.0)
        weights[name] = values.astype(np.float32)
    return weights


def train(loss_of, model, initial, batch, run, steps, dtype):
    """Losses, gradient norms, first gradients and final weights."""
    weights = {name: nn.Parameter(torch.tensor(value, dtype=dtype)) for name, value in initial.items()}
    batch = {
        name: torch.from_numpy(value).to(dtype) if value.dtype == np.float32 else torch.from_numpy(value).long()
        for name, value in batch.items()
    }
    options = {key: value for key, value in run.items() if key not in ("type", "clipping")}
    optimizer = getattr(torch.optim, run["type"])(list(weights.values()), foreach=False, **options)
    losses, norms, gradients = [], [], None
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, weights, batch)
        loss.backward()
        if gradients is None:
            gradients = {name: w.grad.detach().clone().numpy() for name, w in weights.items()}
        norm = nn.utils.clip_grad_norm_(list(weights.values()), run.get("clipping", math.inf), foreach=False)
        losses.append(loss.item())
        norms.append(norm.item())
        optimizer.step()
    final = {name: w.detach().numpy() for name, w in weights.items()}
    return np.array(losses), np.array(norms), gradients, final


def distances(single, double):
    result = {}
    for name, exact in double.items():
        error = single[name].astype(np.float64) - exact
        if name.endswith("attn.c_attn.bias"):  # without the biases of keys, whose true gradient is 0
            keys = slice(len(exact) // 3, 2 * len(exact) // 3)
            error, exact = np.delete(error, keys), np.delete(exact, keys)
        result[name] = {
            "largest": float(np.abs(error).max()),
            "rms": float(np.sqrt((error**2).mean())),
            "rms_of_value": float(np.sqrt((exact**2).mean())),
        }
    return result


def write_model(path, model, loss_of, shapes, batch, random, deviation, runs, steps, finals32=(), finals64=(),
                gradient32=False):
    """Every number in float32 as PyTorch has it and in float64; big tensors only where asked for."""
    initial = initial_weights(shapes, deviation, random)
    used = {run: RUNS[run] for run in runs}
    writer = GoldenWriter({"model": model, "steps": steps, "runs": used, "distance": {}})
    for name, values in batch.items():
        writer.add(name, values)
    for name, values in initial.items():
        writer.add("initial/" + name, values)
    for index, (run, options) in enumerate(used.items()):
        loss, norm, gradient, final = train(loss_of, model, initial, batch, options, steps, torch.float32)
        loss64, norm64, gradient64, final64 = train(loss_of, model, initial, batch, options, steps, torch.float64)
        if index == 0:  # the first gradients are the same in every run
            writer.header["distance"]["gradient"] = distances(gradient, gradient64)
            for name in initial:
                if gradient32:
                    writer.add("gradient/" + name, gradient[name])
                writer.add("gradient64/" + name, gradient64[name])
        writer.add("loss/" + run, loss.astype(np.float32))
        writer.add("loss64/" + run, loss64)
        writer.add("norm/" + run, norm.astype(np.float32))
        writer.add("norm64/" + run, norm64)
        writer.header["distance"][run] = distances(final, final64)
        for name in initial:
            if run in finals32:
                writer.add(f"final/{run}/{name}", final[name])
            if run in finals64:
                writer.add(f"final64/{run}/{name}", final64[name])
        print(f"  {path.stem} {run}: loss {loss64[0]:.6f} -> {loss64[-1]:.6f}, norm {norm64[0]:.4f}")
    writer.write(path)


def text_batch(model, count, random):
    """Tokens with some structure, and their successors."""
    length, vocabulary = model["n_positions"], model["vocab_size"]
    walk = np.cumsum(random.choice([1, 1, 1, 2, 5], size=(count, length + 1)), axis=1)
    tokens = ((walk + random.randint(vocabulary, size=(count, 1))) % vocabulary).astype(np.int32)
    return {"tokens": tokens[:, :-1].copy(), "targets": tokens[:, 1:].copy()}


def write_models(folder):
    gpt = dict(type="gpt", n_layer=2, n_head=3, n_embd=48, n_positions=24, vocab_size=67, n_inner=None,
               activation_function="gelu_new", bias=True, tie_word_embeddings=True, layer_norm_epsilon=1e-5)
    random = np.random.RandomState(SEED)
    write_model(folder / "gpt.golden", gpt, gpt_loss, gpt_shapes(gpt), text_batch(gpt, 4, random), random, 0.05,
                ["adamw", "sgd", "adam", "sgd_clipped"], 20, finals32=["sgd"], finals64=["sgd", "adamw"],
                gradient32=True)

    small = dict(gpt, n_head=2, n_embd=24, n_positions=12, vocab_size=31)
    variants = {
        "gpt_untied_relu": dict(small, tie_word_embeddings=False, activation_function="relu", bias=False, n_inner=40),
        "gpt_gelu": dict(small, activation_function="gelu"),
        "gpt_silu": dict(small, activation_function="silu"),
    }
    for name, model in variants.items():
        random = np.random.RandomState(SEED + 1)
        write_model(folder / f"{name}.golden", model, gpt_loss, gpt_shapes(model), text_batch(model, 3, random), random,
                    0.08, ["adamw", "sgd"], 10)

    # Of prompts and completions: very different numbers of targets count in the three rows, -1 stands for the others.
    random = np.random.RandomState(SEED + 1)
    batch = text_batch(small, 3, random)
    for row, (first, last) in enumerate([(0, 11), (10, 11), (3, 6)]):
        batch["targets"][row, :first] = -1
        batch["targets"][row, last:] = -1
    write_model(folder / "gpt_masked.golden", small, gpt_loss, gpt_shapes(small), batch, random, 0.08, ["adamw", "sgd"], 10)

    random = np.random.RandomState(SEED + 2)
    mlp = dict(type="mlp", layers=[16, 32, 8, 3], activation="tanh", bias=True, loss="cross_entropy")
    batch = {
        "features": random.normal(size=(20, 16)).astype(np.float32),
        "targets": random.randint(3, size=20).astype(np.int32),
    }
    every = list(RUNS)
    write_model(folder / "mlp_classes.golden", mlp, mlp_loss, mlp_shapes(mlp), batch, random, 0.3, every, 20,
                finals32=every, finals64=every, gradient32=True)

    mlp = dict(type="mlp", layers=[8, 8, 1], activation="identity", bias=False, loss="mse")
    features = random.normal(size=(16, 8)).astype(np.float32)
    targets = (features @ random.normal(size=(8, 1)) + 0.1 * random.normal(size=(16, 1))).astype(np.float32)
    batch = {"features": features, "targets": targets}
    every = ["adamw", "adam"]
    write_model(folder / "mlp_squares.golden", mlp, mlp_loss, mlp_shapes(mlp), batch, random, 0.3, every, 20,
                finals32=every, finals64=every, gradient32=True)


# --- mixed precision, step by step -----------------------------------------------------------------------------------

MIXED = {"stated": dict(type="SGD", lr=1e-2), "half": dict(type="SGD", lr=5e-3)}  # half: half the rate, which converges


def mix64(value):
    mask = 2**64 - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


def derive_key(key, name):
    """src/core/random.h."""
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = ((digest ^ byte) * 0x100000001B3) & (2**64 - 1)
    return mix64(mix64(key) ^ digest)


def uniform_numbers(key, count):
    """The first `count` of a key, in [0, 1), as src/core/random.h draws them: Philox4x32-10, upper 24 bits."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    counter = np.arange((count + 3) // 4, dtype=np.uint64)
    x = [counter & low, counter >> shift, np.zeros_like(counter), np.zeros_like(counter)]
    keys = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * x[0], np.uint64(0xCD9E8D57) * x[2]
        x = [(second >> shift) ^ x[1] ^ np.uint64(keys[0]), second & low, (first >> shift) ^ x[3] ^ np.uint64(keys[1]),
             first & low]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    bits = np.stack(x, axis=1).reshape(-1)[:count]
    return (bits >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


def mlp_initial(model, seed):
    """The weights with which zerotrain starts: uniform in +-1/sqrt(inputs), by the names of the tensors."""
    weights = {}
    for name, shape in mlp_shapes(model).items():
        key = derive_key(derive_key(seed, "initial weights"), name)
        uniform = uniform_numbers(key, int(np.prod(shape)))
        bound = np.float32(1.0 / math.sqrt(model["layers"][int(name.split(".")[1])]))
        weights[name] = ((uniform + uniform - np.float32(1)) * bound).reshape(shape)
    return weights


def train_mixed(model, initial, features, targets, options, scale, steps, dtype):
    """Copies of the fp32 weights in `dtype`; forward, loss times scale and backward in it; gradients copied to fp32,
    divided by the scale; the update of the fp32 weights."""
    masters = {name: nn.Parameter(torch.tensor(value)) for name, value in initial.items()}
    optimizer = torch.optim.SGD(list(masters.values()), lr=options["lr"], foreach=False)
    batch = {"features": torch.from_numpy(features).to(dtype), "targets": torch.from_numpy(targets).to(dtype)}
    losses, norms, history = [], [], {name: [] for name in masters}
    for _ in range(steps):
        copies = {name: nn.Parameter(w.detach().to(dtype)) for name, w in masters.items()}
        loss = mlp_loss(model, copies, batch)
        (loss * scale).backward()
        for name, master in masters.items():
            master.grad = copies[name].grad.float() / scale
        squares = sum(float((w.grad.double() ** 2).sum()) for w in masters.values())
        losses.append(loss.item())
        norms.append(math.sqrt(squares))
        optimizer.step()
        for name, master in masters.items():
            history[name].append(master.detach().numpy().reshape(-1)[:: max(1, master.numel() // 16)].copy())
    return np.array(losses), np.array(norms), {name: np.array(values) for name, values in history.items()}


def write_mixed_precision(path, table):
    """The figures of configs/mixed_precision.json: its table, its seed, its steps."""
    model = dict(type="mlp", layers=[512, 512, 1], activation="identity", bias=False, loss="mse")
    seed, scale, steps = 1234, 1024.0, 20
    with open(table, newline="") as file:
        rows = [[np.float32(value) for value in row] for row in list(csv.reader(file))[1:]]
    features = np.array([row[:-1] for row in rows], dtype=np.float32)
    targets = np.array([row[-1:] for row in rows], dtype=np.float32)
    initial = mlp_initial(model, seed)
    writer = GoldenWriter({"model": model, "seed": seed, "loss_scale": scale, "steps": steps, "runs": MIXED})
    for run, options in MIXED.items():
        loss, norm, weights = train_mixed(model, initial, features, targets, options, scale, steps, torch.float16)
        loss32, norm32, weights32 = train_mixed(model, initial, features, targets, options, 1.0, steps, torch.float32)
        writer.add("loss/" + run, loss)
        writer.add("norm/" + run, norm)
        writer.add("loss32/" + run, loss32)
        writer.add("norm32/" + run, norm32)
        for name in initial:  # every n-th element, 16 of each tensor or a few more: [steps, elements]
            writer.add(f"weights/{run}/{name}", weights[name])
            writer.add(f"weights32/{run}/{name}", weights32[name])
        print(f"  {path.stem} {run}: loss {loss[0]:.6f} -> {loss[-1]:.6f}, in fp32 {loss32[-1]:.6f}")
    writer.write(path)


# --- learning rates --------------------------------------------------------------------------------------------------

SCHEDULES = [
    ("constant", None, {}, 3e-4),
    ("warmup, log", "WarmupLR", dict(warmup_min_lr=0.0, warmup_max_lr=1e-3, warmup_num_steps=10), 3e-4),
    ("warmup, linear", "WarmupLR",
     dict(warmup_min_lr=1e-5, warmup_max_lr=1e-2, warmup_num_steps=20, warmup_type="linear"), 3e-4),
    ("warmup over one step counts as two", "WarmupLR",
     dict(warmup_min_lr=1e-4, warmup_max_lr=1e-3, warmup_num_steps=1), 3e-4),
    ("warmup longer than the run", "WarmupLR",
     dict(warmup_min_lr=0.0, warmup_max_lr=1e-3, warmup_num_steps=1000), 3e-4),
    ("decay, log", "WarmupDecayLR",
     dict(total_num_steps=60, warmup_min_lr=0.0, warmup_max_lr=1e-3, warmup_num_steps=10), 3e-4),
    ("decay, linear", "WarmupDecayLR",
     dict(total_num_steps=100, warmup_min_lr=1e-4, warmup_max_lr=2e-3, warmup_num_steps=10, warmup_type="linear"),
     3e-4),
    ("decay shorter than its warmup", "WarmupDecayLR",
     dict(total_num_steps=20, warmup_min_lr=0.0, warmup_max_lr=1e-3, warmup_num_steps=50), 3e-4),
    ("cosine, log", "WarmupCosineLR", dict(total_num_steps=80, warmup_num_steps=10), 3e-4),
    ("cosine, linear, with floors", "WarmupCosineLR",
     dict(total_num_steps=100, warmup_num_steps=5, warmup_min_ratio=0.1, cos_min_ratio=0.2, warmup_type="linear"),
     6e-4),
    ("cosine shorter than its warmup", "WarmupCosineLR", dict(total_num_steps=20, warmup_num_steps=50), 3e-4),
]


def rate_by_formula(kind, p, optimizer_lr, update):
    """The rate of update number `update`, from 1; DeepSpeed's counter then stands at update - 2."""
    if kind is None:
        return optimizer_lr
    i = update - 2
    n = max(2, p["warmup_num_steps"])
    total = p.get("total_num_steps", 0)
    if 0 <= i < n:
        rising = i / n if p.get("warmup_type", "log") == "linear" else math.log(i + 1) / math.log(n)
    if kind == "WarmupCosineLR":
        if i < 0:
            return 0.0
        if i < n:
            floor = p.get("warmup_min_ratio", 0.0)
            return optimizer_lr * (floor + (1 - floor) * rising)
        progress = min(1.0, (i - n + 1) / max(1, total - n))
        floor = p.get("cos_min_ratio", 1e-4)
        return optimizer_lr * max(0.0, floor + (1 - floor) * (1 + math.cos(math.pi * progress)) / 2)
    low, high = p["warmup_min_lr"], p["warmup_max_lr"]
    if i < 0:
        gamma = 0.0
    elif i < n:
        gamma = rising
    elif kind == "WarmupLR":
        gamma = 1.0
    else:
        gamma = max(0.0, (total - i) / max(1, total - n))
    return low + (high - low) * gamma


def rates_by_deepspeed(module, kind, p, optimizer_lr, updates):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=optimizer_lr)
    if kind is None:
        return [optimizer_lr] * updates
    scheduler = getattr(module, kind)(optimizer, **p)
    rates = []
    for _ in range(updates):
        rates.append(float(optimizer.param_groups[0]["lr"]))
        scheduler.step()
    return rates


def load_schedulers(path):
    """DeepSpeed's file of schedulers by itself: of the package it needs only a logger."""
    import logging

    package = types.ModuleType("deepspeed")
    package.utils = types.ModuleType("deepspeed.utils")
    package.utils.logger = logging.getLogger("deepspeed")
    sys.modules.update({"deepspeed": package, "deepspeed.utils": package.utils})
    spec = importlib.util.spec_from_file_location("lr_schedules", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_schedules(path, deepspeed):
    module = load_schedulers(deepspeed) if deepspeed else None
    updates = 100
    writer = GoldenWriter({"cases": [], "origin": "DeepSpeed" if module else "formulas"})
    for name, kind, parameters, optimizer_lr in SCHEDULES:
        rates = [rate_by_formula(kind, parameters, optimizer_lr, k) for k in range(1, updates + 1)]
        if module:
            theirs = rates_by_deepspeed(module, kind, parameters, optimizer_lr, updates)
            if not np.allclose(rates, theirs, rtol=1e-13, atol=0.0):
                different = [k + 1 for k in range(updates) if not math.isclose(rates[k], theirs[k], rel_tol=1e-13)]
                raise SystemExit(f"{name}: formulas and DeepSpeed differ at updates {different}")
            rates = theirs
        writer.header["cases"].append(
            {"name": name, "type": kind or "", "params": parameters, "optimizer_lr": optimizer_lr})
        writer.add(name, np.array(rates, dtype=np.float64))
    writer.write(path)


def main():
    parser = argparse.ArgumentParser(description="Writes tests/golden/*.golden; the file's head says what and how.")
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
    parser.add_argument("--output", type=pathlib.Path, default=default, help="folder to write into")
    parser.add_argument("--deepspeed", type=pathlib.Path, help="DeepSpeed's lr_schedules.py")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    write_models(arguments.output)
    table = pathlib.Path(__file__).resolve().parents[2] / "configs" / "data" / "four_rows.csv"
    write_mixed_precision(arguments.output / "mixed_precision.golden", table)
    write_schedules(arguments.output / "schedules.golden", arguments.deepspeed)


if __name__ == "__main__":
    main()
