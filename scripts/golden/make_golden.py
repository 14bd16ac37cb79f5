#!/usr/bin/env python3
"""Writes the numbers that zerotrain's tests are held against: tests/golden/*.golden, computed by PyTorch.

Run by hand, in a virtual environment outside the repository that has torch and numpy:

    python scripts/golden/make_golden.py --deepspeed path/to/deepspeed/runtime/lr_schedules.py
                                         [--deepspeed-scaler path/to/deepspeed/runtime/fp16/loss_scaler.py]

Learning rates and momenta come from DeepSpeed's own schedulers (that one file, of an unpacked source archive of the
package, which need not be installed). --only writes some of the files: --only optimizers --only schedules.

PyTorch has neither Lion nor Lamb, and its Muon computes in bfloat16: their steps are written out below, as their authors
have them.

Sequences of loss scales (loss_scales.py) are made from DeepSpeed's own class, PyTorch's GradScaler and apex's rule,
with --deepspeed-scaler only.

A .golden file is one line of JSON, then raw little-endian numbers. "tensors" in the JSON maps a name to its dtype
(float32, float64, int32), shape and offset in bytes after the line. tests/golden_file.h reads it.

What is in the file of a model (RUN is the name of an optimizer's set-up; the batch is the same one in every step):

    tokens, targets            [B, T], targets -1 where the loss does not count; or features [B, F] with targets [B]
                               (classes) or [B, outputs]
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

from loss_scales import write_loss_scales

SEED = 20240607
# Entries are arguments of the class in torch.optim but for: clipping, the largest norm; bias_correction, false as in
# DeepSpeed's Adam; exclude, kinds of tensors without weight decay; schedule, one of DeepSpeed's.
RUNS = {
    "adamw": dict(type="AdamW", lr=1e-3, betas=[0.9, 0.999], eps=1e-8, weight_decay=0.1),
    "adam": dict(type="Adam", lr=1e-3, betas=[0.9, 0.999], eps=1e-8, weight_decay=0.01),  # coupled decay
    "sgd": dict(type="SGD", lr=0.1, momentum=0.9, weight_decay=0.0),
    "sgd_clipped": dict(type="SGD", lr=0.1, momentum=0.9, weight_decay=0.0, clipping=0.5),
}
CYCLE = dict(cycle_min_lr=2e-4, cycle_max_lr=4e-3, cycle_first_step_size=12, cycle_second_step_size=20,
             decay_step_size=5, decay_lr_rate=0.5, cycle_min_mom=0.7, cycle_max_mom=0.92, decay_mom_rate=0.01)
OPTIMIZERS = {
    "adamw": dict(type="AdamW", lr=2e-3, betas=[0.9, 0.99], eps=1e-8, weight_decay=0.1),
    "adamw_excluding_biases": dict(type="AdamW", lr=2e-3, betas=[0.9, 0.99], eps=1e-8, weight_decay=0.5,
                                   exclude=["bias"]),
    "adamw_excluding_norms": dict(type="AdamW", lr=2e-3, betas=[0.9, 0.99], eps=1e-8, weight_decay=0.5,
                                  exclude=["bias", "layer_norm"]),
    "adamw_amsgrad": dict(type="AdamW", lr=5e-3, betas=[0.8, 0.9], eps=1e-8, weight_decay=0.1, amsgrad=True),
    "adamw_cycled": dict(type="AdamW", lr=1.0, betas=[0.9, 0.999], eps=1e-8, weight_decay=0.1,
                         schedule=dict(type="OneCycle", params=CYCLE)),
    "adam": dict(type="Adam", lr=2e-3, betas=[0.9, 0.99], eps=1e-8, weight_decay=0.01),
    "adam_amsgrad": dict(type="Adam", lr=5e-3, betas=[0.8, 0.9], eps=1e-8, weight_decay=0.01, amsgrad=True),
    "adam_uncorrected": dict(type="Adam", lr=5e-4, betas=[0.9, 0.99], eps=1e-6, weight_decay=0.0,
                             bias_correction=False),
    "sgd": dict(type="SGD", lr=0.05, weight_decay=0.01),
    "sgd_momentum": dict(type="SGD", lr=0.01, momentum=0.9, weight_decay=0.01, exclude=["layer_norm"]),
    "sgd_dampened": dict(type="SGD", lr=0.05, momentum=0.8, dampening=0.4, weight_decay=0.0, clipping=0.5),
    "sgd_nesterov": dict(type="SGD", lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.01),
    "sgd_cycled": dict(type="SGD", lr=1.0, momentum=0.5, weight_decay=0.01,
                       schedule=dict(type="OneCycle", params=dict(CYCLE, cycle_min_lr=5e-3, cycle_max_lr=0.1))),
    "adagrad": dict(type="Adagrad", lr=1e-2, eps=1e-10, weight_decay=0.0),
    "adagrad_slowing": dict(type="Adagrad", lr=2e-2, eps=1e-8, lr_decay=0.05, initial_accumulator_value=0.01,
                            weight_decay=0.01),
    "lion": dict(type="Lion", lr=3e-4, betas=[0.9, 0.999], weight_decay=0.1),
    "lion_excluding_norms": dict(type="Lion", lr=2e-3, betas=[0.95, 0.98], weight_decay=0.5,
                                 exclude=["bias", "layer_norm"]),
    "lamb": dict(type="Lamb", lr=1e-2, betas=[0.9, 0.99], eps=1e-6, weight_decay=0.01),
    "lamb_bounded": dict(type="Lamb", lr=1e-2, betas=[0.9, 0.99], eps=1e-6, weight_decay=0.1, max_coeff=0.6,
                         min_coeff=0.3, exclude=["bias", "layer_norm"]),
    "lamb_inside": dict(type="Lamb", lr=1e-2, betas=[0.8, 0.9], eps=1e-3, weight_decay=0.0, bias_correction=False,
                        eps_inside_sqrt=True),
    "muon": dict(type="Muon", lr=0.02, momentum=0.95, nesterov=True, betas=[0.9, 0.95], eps=1e-8, weight_decay=0.1),
    "muon_rates": dict(type="Muon", lr=0.01, muon_lr=0.005, adam_lr=2e-3, momentum=0.8, nesterov=False,
                       betas=[0.8, 0.9], eps=1e-8, weight_decay=0.0),
    "muon_cycled": dict(type="Muon", lr=1.0, muon_lr=4.0, adam_lr=0.5, momentum=0.95, nesterov=True,
                        betas=[0.9, 0.999], eps=1e-8, weight_decay=0.01,
                        schedule=dict(type="OneCycle", params=CYCLE)),
}


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al., Symbolic Discovery of Optimization Algorithms (2023); PyTorch has none."""

    def __init__(self, groups, foreach, **options):
        super().__init__(groups, options)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for w in group["params"]:
                momentum = self.state[w].setdefault("exp_avg", torch.zeros_like(w))
                w.mul_(1 - group["lr"] * group["weight_decay"])
                w.sub_(torch.sign(momentum * beta1 + w.grad * (1 - beta1)) * group["lr"])
                momentum.mul_(beta2).add_(w.grad * (1 - beta2))


class Lamb(torch.optim.Optimizer):
    """Algorithm 2 of You et al., Large Batch Optimization for Deep Learning (2020), with DeepSpeed's bounds on the
    trust ratio; PyTorch has none."""

    def __init__(self, groups, foreach, bias_correction=True, eps_inside_sqrt=False, max_coeff=10.0, min_coeff=0.01,
                 **options):
        super().__init__(groups, options)
        self.corrects, self.inside, self.bounds = bias_correction, eps_inside_sqrt, (min_coeff, max_coeff)
        self.number = 0

    @torch.no_grad()
    def step(self):
        self.number += 1
        for group in self.param_groups:
            correct1, correct2 = [1 - beta**self.number if self.corrects else 1.0 for beta in group["betas"]]
            beta1, beta2 = group["betas"]
            for w in group["params"]:
                mean = self.state[w].setdefault("exp_avg", torch.zeros_like(w))
                squares = self.state[w].setdefault("exp_avg_sq", torch.zeros_like(w))
                mean.mul_(beta1).add_(w.grad * (1 - beta1))
                squares.mul_(beta2).add_(w.grad * w.grad * (1 - beta2))
                corrected = squares / correct2
                root = torch.sqrt(corrected + group["eps"]) if self.inside else torch.sqrt(corrected) + group["eps"]
                direction = mean / correct1 / root + group["weight_decay"] * w
                norms = [float(torch.linalg.vector_norm(x.double())) for x in (w, direction)]
                ratio = max(self.bounds[0], min(self.bounds[1], norms[0] / norms[1])) if min(norms) > 0 else 1.0
                w.sub_(direction * (group["lr"] * ratio))


class Muon(torch.optim.Optimizer):
    """Jordan et al., Muon (2024): momentum made orthogonal by five rounds of a Newton-Schulz iteration, for matrices of
    hidden layers; Adam for all else. DeepSpeed's muon_lr and adam_lr. PyTorch's own computes in bfloat16."""

    def __init__(self, groups, foreach, muon_lr=None, adam_lr=None, **options):
        super().__init__(groups, options)
        lr = options["lr"]
        self.ratios = [1.0 if rate is None else rate / lr for rate in (muon_lr, adam_lr)]
        self.number = 0

    @staticmethod
    def orthogonal(x):
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        x = x / (torch.linalg.vector_norm(x) + 1e-7)
        for _ in range(5):
            gram = x @ x.T
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        return x.T if tall else x

    @torch.no_grad()
    def step(self):
        self.number += 1
        for group in self.param_groups:
            (beta1, beta2), decay = group["betas"], group["weight_decay"]
            for w in group["params"]:
                mean = self.state[w].setdefault("exp_avg", torch.zeros_like(w))
                if w.hidden:
                    # A schedule of DeepSpeed's moves the betas: the first of them stands for the momentum, too.
                    beta = beta1 if self.scheduled else group["momentum"]
                    mean.lerp_(w.grad, 1 - beta)
                    update = w.grad.lerp(mean, beta) if group["nesterov"] else mean
                    rows, columns = w.shape
                    update = self.orthogonal(update) * max(1.0, rows / columns)**0.5
                    lr = group["lr"] * self.ratios[0]
                    w.mul_(1 - lr * decay).sub_(update * lr)
                    continue
                squares = self.state[w].setdefault("exp_avg_sq", torch.zeros_like(w))
                mean.lerp_(w.grad, 1 - beta1)
                squares.mul_(beta2).addcmul_(w.grad, w.grad, value=1 - beta2)
                root = squares.sqrt() / math.sqrt(1 - beta2**self.number) + group["eps"]
                lr = group["lr"] * self.ratios[1]
                w.mul_(1 - lr * decay).sub_(mean / root * (lr / (1 - beta1**self.number)))


OWN_OPTIMIZERS = {"Lion": Lion, "Lamb": Lamb, "Muon": Muon}


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


def kind_of(name):
    """As weight_decay_exclude names them; None: a matrix or a table."""
    if ".ln_" in name or name.startswith("ln_"):
        return "layer_norm"
    return "bias" if name.endswith(".bias") else None


def is_hidden(name, w):
    """A matrix of a hidden layer: neither a table of embeddings nor the head."""
    return w.dim() == 2 and not name.startswith(("wte", "wpe", "lm_head"))


def make_optimizer(run, weights):
    own = ["type", "clipping", "exclude", "schedule"] + (["bias_correction"] if run["type"] == "Adam" else [])
    options = {key: value for key, value in run.items() if key not in own}
    excluded = {name for name in weights if kind_of(name) in run.get("exclude", [])}
    groups = [{"params": [w for name, w in weights.items() if name not in excluded]}]
    if excluded:
        groups.append({"params": [weights[name] for name in excluded], "weight_decay": 0.0})
    make = OWN_OPTIMIZERS.get(run["type"]) or getattr(torch.optim, run["type"])
    for name, w in weights.items():
        w.hidden = is_hidden(name, w)
    optimizer = make(groups, foreach=False, **options)
    optimizer.scheduled = "schedule" in run
    if run["type"] == "Adam" and not run.get("bias_correction", True):
        # PyTorch's Adam always corrects; after so many steps the corrections have become 1 exactly.
        for w in weights.values():
            optimizer.state[w] = {"step": torch.tensor(1e6), "exp_avg": torch.zeros_like(w),
                                  "exp_avg_sq": torch.zeros_like(w)}
    return optimizer


def train(loss_of, model, initial, batch, run, steps, dtype, schedulers=None):
    """Losses, gradient norms, first gradients and final weights."""
    weights = {name: nn.Parameter(torch.tensor(value, dtype=dtype)) for name, value in initial.items()}
    batch = {
        name: torch.from_numpy(value).to(dtype) if value.dtype == np.float32 else torch.from_numpy(value).long()
        for name, value in batch.items()
    }
    optimizer = make_optimizer(run, weights)
    schedule = run.get("schedule")
    if schedule:
        # DeepSpeed's schedulers move betas only: SGD takes its momentum from an Adam that is scheduled in its place.
        sgd = run["type"] == "SGD"
        scheduled = torch.optim.Adam([nn.Parameter(torch.zeros(1))]) if sgd else optimizer
        scheduler = getattr(schedulers, schedule["type"])(scheduled, **schedule["params"])
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
        if schedule and sgd:
            for group in optimizer.param_groups:
                group["lr"] = scheduled.param_groups[0]["lr"]
                group["momentum"] = scheduled.param_groups[0]["betas"][0]
        optimizer.step()
        if schedule:
            scheduler.step()
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


def write_model(path, model, loss_of, shapes, batch, random, deviation, used, steps, finals32=(), finals64=(),
                gradient32=False, schedulers=None):
    """Every number in float32 as PyTorch has it and in float64; big tensors only where asked for."""
    initial = initial_weights(shapes, deviation, random)
    writer = GoldenWriter({"model": model, "steps": steps, "runs": used, "distance": {}})
    for name, values in batch.items():
        writer.add(name, values)
    for name, values in initial.items():
        writer.add("initial/" + name, values)
    for index, (run, options) in enumerate(used.items()):
        loss, norm, gradient, final = train(loss_of, model, initial, batch, options, steps, torch.float32, schedulers)
        loss64, norm64, gradient64, final64 = train(loss_of, model, initial, batch, options, steps, torch.float64,
                                                    schedulers)
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


def some_runs(*names):
    return {name: RUNS[name] for name in names}


def write_models(folder):
    gpt = dict(type="gpt", n_layer=2, n_head=3, n_embd=48, n_positions=24, vocab_size=67, n_inner=None,
               activation_function="gelu_new", bias=True, tie_word_embeddings=True, layer_norm_epsilon=1e-5)
    random = np.random.RandomState(SEED)
    write_model(folder / "gpt.golden", gpt, gpt_loss, gpt_shapes(gpt), text_batch(gpt, 4, random), random, 0.05,
                some_runs("adamw", "sgd", "adam", "sgd_clipped"), 20, finals32=["sgd"], finals64=["sgd", "adamw"],
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
                    0.08, some_runs("adamw", "sgd"), 10)

    # Of prompts and completions: very different numbers of targets count in the three rows, -1 stands for the others.
    random = np.random.RandomState(SEED + 1)
    batch = text_batch(small, 3, random)
    for row, (first, last) in enumerate([(0, 11), (10, 11), (3, 6)]):
        batch["targets"][row, :first] = -1
        batch["targets"][row, last:] = -1
    write_model(folder / "gpt_masked.golden", small, gpt_loss, gpt_shapes(small), batch, random, 0.08,
                some_runs("adamw", "sgd"), 10)

    random = np.random.RandomState(SEED + 2)
    mlp = dict(type="mlp", layers=[16, 32, 8, 3], activation="tanh", bias=True, loss="cross_entropy")
    batch = {
        "features": random.normal(size=(20, 16)).astype(np.float32),
        "targets": random.randint(3, size=20).astype(np.int32),
    }
    every = RUNS
    write_model(folder / "mlp_classes.golden", mlp, mlp_loss, mlp_shapes(mlp), batch, random, 0.3, every, 20,
                finals32=every, finals64=every, gradient32=True)

    mlp = dict(type="mlp", layers=[8, 8, 1], activation="identity", bias=False, loss="mse")
    features = random.normal(size=(16, 8)).astype(np.float32)
    targets = (features @ random.normal(size=(8, 1)) + 0.1 * random.normal(size=(16, 1))).astype(np.float32)
    batch = {"features": features, "targets": targets}
    every = some_runs("adamw", "adam")
    write_model(folder / "mlp_squares.golden", mlp, mlp_loss, mlp_shapes(mlp), batch, random, 0.3, every, 20,
                finals32=every, finals64=every, gradient32=True)


def write_optimizers(path, schedulers):
    """Every variant of every optimizer over 50 steps of a GPT so small that all final weights fit."""
    gpt = dict(type="gpt", n_layer=1, n_head=2, n_embd=16, n_positions=8, vocab_size=19, n_inner=24,
               activation_function="gelu_new", bias=True, tie_word_embeddings=True, layer_norm_epsilon=1e-5)
    random = np.random.RandomState(SEED + 3)
    write_model(path, gpt, gpt_loss, gpt_shapes(gpt), text_batch(gpt, 12, random), random, 0.2, OPTIMIZERS, 50,
                finals64=OPTIMIZERS, schedulers=schedulers)


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

# Name, type, parameters, class in torch.optim and its arguments.
ADAM = ("AdamW", dict(lr=3e-4, betas=(0.9, 0.999)))
SGD = ("SGD", dict(lr=6e-4))
QANET = dict(cycle_min_lr=0.004, cycle_max_lr=0.015, cycle_first_step_size=200, cycle_second_step_size=100,
             cycle_first_stair_count=100, cycle_second_stair_count=100, decay_step_size=100, decay_lr_rate=0.01)
SCHEDULES = [
    ("constant", None, {}, ADAM),
    ("warmup, defaults", "WarmupLR", {}, ADAM),
    ("warmup, log", "WarmupLR", dict(warmup_min_lr=0.0, warmup_max_lr=1e-3, warmup_num_steps=10), ADAM),
    ("warmup, linear", "WarmupLR",
     dict(warmup_min_lr=1e-5, warmup_max_lr=1e-2, warmup_num_steps=320, warmup_type="linear"), ADAM),
    ("warmup over one step counts as two", "WarmupLR",
     dict(warmup_min_lr=1e-4, warmup_max_lr=1e-3, warmup_num_steps=1), ADAM),
    ("warmup longer than the run", "WarmupLR",
     dict(warmup_min_lr=0.0, warmup_max_lr=1e-3, warmup_num_steps=4000), SGD),
    ("decay, defaults", "WarmupDecayLR", dict(total_num_steps=1000), ADAM),
    ("decay, log", "WarmupDecayLR",
     dict(total_num_steps=900, warmup_min_lr=0.0, warmup_max_lr=1e-3, warmup_num_steps=150), ADAM),
    ("decay, linear", "WarmupDecayLR",
     dict(total_num_steps=1000, warmup_min_lr=1e-4, warmup_max_lr=2e-3, warmup_num_steps=10, warmup_type="linear"),
     ADAM),
    ("decay shorter than its warmup", "WarmupDecayLR",
     dict(total_num_steps=20, warmup_min_lr=0.0, warmup_max_lr=1e-3, warmup_num_steps=50), ADAM),
    ("cosine, defaults", "WarmupCosineLR", dict(total_num_steps=1500), ADAM),
    ("cosine, log", "WarmupCosineLR", dict(total_num_steps=800, warmup_num_steps=70), SGD),
    ("cosine, linear, with floors", "WarmupCosineLR",
     dict(total_num_steps=1000, warmup_num_steps=5, warmup_min_ratio=0.1, cos_min_ratio=0.2, warmup_type="linear"),
     SGD),
    ("cosine shorter than its warmup", "WarmupCosineLR", dict(total_num_steps=20, warmup_num_steps=50), ADAM),
    ("cycle, defaults", "OneCycle", dict(cycle_min_lr=1e-4, cycle_max_lr=1e-3), ADAM),
    ("cycle and rest", "OneCycle", dict(cycle_min_lr=1e-4, cycle_max_lr=1e-3, cycle_first_step_size=230), ADAM),
    ("cycle, second half longer, momentum of its own", "OneCycle",
     dict(cycle_min_lr=3e-5, cycle_max_lr=7e-3, cycle_first_step_size=37, cycle_second_step_size=311,
          cycle_min_mom=0.71, cycle_max_mom=0.97), ADAM),
    ("cycle, stairs and decay", "OneCycle", QANET, ADAM),
    ("cycle, stairs on one side", "OneCycle",
     dict(cycle_min_lr=1e-4, cycle_max_lr=1e-2, cycle_first_step_size=333, cycle_second_step_size=77,
          cycle_first_stair_count=7, cycle_second_stair_count=0), ADAM),
    ("cycle, the first half's stairs in both", "OneCycle",
     dict(cycle_min_lr=1e-4, cycle_max_lr=1e-2, cycle_first_step_size=100, cycle_second_step_size=57,
          cycle_first_stair_count=3), ADAM),
    ("cycle, more stairs than steps", "OneCycle",
     dict(cycle_min_lr=1e-4, cycle_max_lr=1e-2, cycle_first_step_size=13, cycle_second_step_size=400,
          cycle_first_stair_count=40), ADAM),
    ("cycle without a way down", "OneCycle",
     dict(cycle_min_lr=1e-4, cycle_max_lr=1e-2, cycle_first_step_size=300, cycle_second_step_size=0), ADAM),
    ("cycle, rate and momentum decay", "OneCycle",
     dict(cycle_min_lr=1e-3, cycle_max_lr=1e-2, cycle_first_step_size=111, cycle_second_step_size=222,
          decay_step_size=50, decay_lr_rate=0.3, decay_mom_rate=0.004), ADAM),
    ("cycle, momentum decays alone", "OneCycle",
     dict(cycle_min_lr=1e-3, cycle_max_lr=1e-2, cycle_first_step_size=100, decay_step_size=70, decay_mom_rate=0.004),
     ADAM),
    ("cycle, decay rates without a size", "OneCycle",
     dict(cycle_min_lr=1e-3, cycle_max_lr=1e-2, cycle_first_step_size=100, decay_lr_rate=0.1, decay_mom_rate=0.1),
     ADAM),
    ("cycle of the rate alone", "OneCycle",
     dict(cycle_min_lr=1e-4, cycle_max_lr=1e-2, cycle_first_step_size=130, cycle_momentum=False, decay_step_size=9,
          decay_lr_rate=0.02), ADAM),
    ("cycle, an optimizer without betas", "OneCycle", QANET, SGD),
    ("range test, defaults", "LRRangeTest", {}, ADAM),
    ("range test, continuous", "LRRangeTest",
     dict(lr_range_test_min_lr=1e-5, lr_range_test_step_size=30, lr_range_test_step_rate=5.0), SGD),
    ("range test, staircase", "LRRangeTest",
     dict(lr_range_test_min_lr=1e-6, lr_range_test_step_size=7, lr_range_test_step_rate=0.3,
          lr_range_test_staircase=True), ADAM),
]


def values_by_deepspeed(module, kind, p, optimizer, updates):
    """Rates, first and second betas that the updates use; the betas are None for an optimizer without them."""
    name, options = optimizer
    optimizer = getattr(torch.optim, name)([nn.Parameter(torch.zeros(1))], **options)
    scheduler = getattr(module, kind)(optimizer, **p) if kind else None
    rates, betas = [], []
    for _ in range(updates):
        group = optimizer.param_groups[0]
        rates.append(float(group["lr"]))
        betas.append(group.get("betas"))
        if scheduler:
            scheduler.step()
    return rates, None if betas[0] is None else betas


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


def write_schedules(path, module):
    updates = 1000
    writer = GoldenWriter({"cases": []})
    for name, kind, parameters, optimizer in SCHEDULES:
        rates, betas = values_by_deepspeed(module, kind, parameters, optimizer, updates)
        writer.header["cases"].append(
            {"name": name, "type": kind or "", "params": parameters, "optimizer_lr": optimizer[1]["lr"],
             "betas": optimizer[1].get("betas")})
        writer.add(name, np.array(rates, dtype=np.float64))
        if betas and any(pair != betas[-1] for pair in betas):
            writer.add(name + "/beta1", np.array([pair[0] for pair in betas], dtype=np.float64))
            writer.add(name + "/beta2", np.array([pair[1] for pair in betas], dtype=np.float64))
        elif betas:
            assert betas[-1] == optimizer[1]["betas"], name  # not moved
    writer.write(path)


def main():
    parser = argparse.ArgumentParser(description="Writes tests/golden/*.golden; the file's head says what and how.")
    default = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
    parser.add_argument("--output", type=pathlib.Path, default=default, help="folder to write into")
    parser.add_argument("--deepspeed", type=pathlib.Path, required=True, help="DeepSpeed's lr_schedules.py")
    parser.add_argument("--deepspeed-scaler", type=pathlib.Path, help="DeepSpeed's loss_scaler.py")
    parts = ["models", "mixed_precision", "optimizers", "schedules", "loss_scales"]
    parser.add_argument("--only", choices=parts, action="append", help="a part of the files")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    schedulers = load_schedulers(arguments.deepspeed)
    wanted = arguments.only or parts
    if "models" in wanted:
        write_models(arguments.output)
    if "mixed_precision" in wanted:
        table = pathlib.Path(__file__).resolve().parents[2] / "configs" / "data" / "four_rows.csv"
        write_mixed_precision(arguments.output / "mixed_precision.golden", table)
    if "optimizers" in wanted:
        write_optimizers(arguments.output / "optimizers.golden", schedulers)
    if "schedules" in wanted:
        write_schedules(arguments.output / "schedules.golden", schedulers)
    if "loss_scales" in wanted and arguments.deepspeed_scaler:
        writer = GoldenWriter({"cases": []})
        write_loss_scales(writer, arguments.deepspeed_scaler, SEED)
        writer.write(arguments.output / "loss_scales.golden")


if __name__ == "__main__":
    main()
