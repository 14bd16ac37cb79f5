"""Sequences of loss scales for tests/golden/loss_scales.golden; make_golden.py calls write_loss_scales.

Each case is a scaler with its settings and hundreds of steps: "NAME/overflow" int32 [steps], 1 where gradients
overflowed, and "NAME/scale" float64 [steps], the scale after the step. The header's "cases" name the rule, the
settings, and whether the last step ended the run ("ends": an overflow at the minimum).

Where the numbers come from ("origin" of a case):

    DeepSpeed   the class DynamicLossScaler of DeepSpeed's runtime/fp16/loss_scaler.py
    PyTorch     torch.amp.GradScaler, stepped over a gradient that is infinite or not
    apex        the published rule of apex's amp, written out below, which is also held against PyTorch's where the
                maximum is not reached
"""

import importlib.util
import logging
import sys
import types

import numpy as np
import torch
from torch import nn


def steps_of(settings):
    """Enough to see several growths."""
    return max(600, 3 * settings["loss_scale_window"])


class DeepSpeedScaler:
    origin = "DeepSpeed"

    def __init__(self, module, settings):
        self.scaler = module.DynamicLossScaler(
            init_scale=2.0 ** settings["initial_scale_power"], scale_window=settings["loss_scale_window"],
            min_scale=settings["min_loss_scale"], delayed_shift=settings["hysteresis"],
            consecutive_hysteresis=settings["consecutive_hysteresis"])

    def scale(self):
        return float(self.scaler.cur_scale)

    def step(self, overflow):
        """False if the run is to end."""
        try:
            self.scaler.update_scale(overflow)
        except Exception as error:  # DeepSpeed raises nothing more special
            assert "already at minimum" in str(error)
            return False
        return True


class PyTorchScaler:
    origin = "PyTorch"

    def __init__(self, settings):
        self.scaler = torch.amp.GradScaler(device="cpu", init_scale=2.0 ** settings["initial_scale_power"],
                                           growth_interval=settings["loss_scale_window"])
        self.weight = nn.Parameter(torch.zeros(1))
        self.optimizer = torch.optim.SGD([self.weight], lr=0.0)
        self.scaler.scale(torch.zeros(1))  # makes its tensors

    def scale(self):
        return float(self.scaler.get_scale())

    def step(self, overflow):
        self.weight.grad = torch.full((1,), float("inf") if overflow else 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return True


class ApexScaler:
    """Halved at an overflow, not below a minimum where there is one; doubled, at most to the maximum, by the window-th
    clean step in a row, from which the count begins anew."""

    origin = "apex"

    def __init__(self, settings):
        self.minimum = settings["min_loss_scale"] or None
        self.maximum = settings["max_loss_scale"]
        self.window = settings["loss_scale_window"]
        self.value = min(self.maximum, 2.0 ** settings["initial_scale_power"])
        self.clean = 0

    def scale(self):
        return self.value

    def step(self, overflow):
        if overflow:
            if self.value == self.minimum:
                return False  # ours: nothing is left to lower
            self.value = self.value / 2 if self.minimum is None else max(self.minimum, self.value / 2)
            self.clean = 0
            return True
        self.clean += 1
        if self.clean == self.window:
            self.value = min(self.maximum, self.value * 2)
            self.clean = 0
        return True


def load_deepspeed(path):
    """DeepSpeed's file by itself: of the package it needs a logger, the number of the rank, and two names."""
    modules = {name: types.ModuleType(name) for name in
               ("deepspeed", "deepspeed.comm", "deepspeed.utils", "deepspeed.runtime", "deepspeed.runtime.utils",
                "deepspeed.runtime.config_utils")}
    modules["deepspeed"].comm = modules["deepspeed.comm"]
    modules["deepspeed.comm"].get_rank = lambda: 0
    logger = logging.getLogger("deepspeed")
    logger.setLevel(logging.ERROR)
    modules["deepspeed.utils"].logger = logger
    modules["deepspeed.runtime.utils"].has_inf_or_nan = None
    modules["deepspeed.runtime.config_utils"].DeepSpeedConfigObject = object
    kept = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    spec = importlib.util.spec_from_file_location("deepspeed.runtime.fp16.loss_scaler", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, before in kept.items():
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
    return module


def settings_of(power, window, **more):
    return dict(dict(initial_scale_power=power, loss_scale_window=window, hysteresis=1, consecutive_hysteresis=False,
                     min_loss_scale=1.0, max_loss_scale=2.0**126), **more)


# Overflows by chance, or above a bound that wanders, as gradients do: ("chance", probability) or ("bound", log2).
CASES = [
    ("defaults", "deepspeed", settings_of(32, 1000, hysteresis=2), ("bound", 17.0)),
    ("hysteresis 1, window 3", "deepspeed", settings_of(16, 3), ("bound", 12.0)),
    ("hysteresis 2, window 5", "deepspeed", settings_of(20, 5, hysteresis=2), ("bound", 14.0)),
    ("hysteresis 3, by chance", "deepspeed", settings_of(24, 4, hysteresis=3), ("chance", 0.2)),
    ("consecutive hysteresis 2", "deepspeed", settings_of(20, 6, hysteresis=2, consecutive_hysteresis=True),
     ("bound", 11.0)),
    ("consecutive hysteresis 4, by chance", "deepspeed",
     settings_of(30, 7, hysteresis=4, consecutive_hysteresis=True), ("chance", 0.5)),
    ("window 1", "deepspeed", settings_of(8, 1, hysteresis=2), ("bound", 20.0)),
    ("down to the minimum", "deepspeed", settings_of(10, 20, hysteresis=2, min_loss_scale=16.0), ("chance", 0.08)),
    ("down to 3", "deepspeed", settings_of(16, 8, min_loss_scale=3.0), ("chance", 0.12)),
    ("up and down from 3", "deepspeed", settings_of(2, 2, min_loss_scale=3.0), ("bound", 9.0)),
    ("starts below its minimum", "deepspeed", settings_of(1, 2, hysteresis=2, min_loss_scale=5.0), ("bound", 7.0)),
    ("GradScaler, window 2000", "pytorch", settings_of(16, 2000, min_loss_scale=0.0), ("bound", 15.0)),
    ("GradScaler, window 5", "pytorch", settings_of(16, 5, min_loss_scale=0.0), ("bound", 12.0)),
    ("GradScaler, window 1", "pytorch", settings_of(4, 1, min_loss_scale=0.0), ("bound", 18.0)),
    ("GradScaler, by chance", "pytorch", settings_of(30, 3, min_loss_scale=0.0), ("chance", 0.22)),
    ("amp, window 6, at its maximum", "apex", settings_of(16, 6, min_loss_scale=0.0, max_loss_scale=2.0**24),
     ("bound", 24.1)),
    ("amp, by chance", "apex", settings_of(16, 3, min_loss_scale=0.0, max_loss_scale=2.0**24), ("chance", 0.15)),
    ("amp, maximum 3000", "apex", settings_of(16, 4, min_loss_scale=0.0, max_loss_scale=3000.0), ("chance", 0.1)),
    ("amp, minimum 100", "apex", settings_of(16, 4, min_loss_scale=100.0, max_loss_scale=2.0**24), ("chance", 0.22)),
]


def run(scaler, steps, pattern, random):
    kind, parameter = pattern
    bound = parameter
    overflows, scales, ends = [], [], False
    for _ in range(steps):
        bound += random.normal(0.0, 0.15)
        overflow = random.uniform() < parameter if kind == "chance" else np.log2(scaler.scale()) > bound
        ends = not scaler.step(bool(overflow))
        overflows.append(int(overflow))
        scales.append(scaler.scale())
        if ends:
            break
    return overflows, scales, ends


def write_loss_scales(writer, deepspeed, seed):
    """`writer`: a GoldenWriter with a header; `deepspeed`: path of DeepSpeed's loss_scaler.py."""
    module = load_deepspeed(deepspeed)
    makers = {"deepspeed": lambda settings: DeepSpeedScaler(module, settings), "pytorch": PyTorchScaler,
              "apex": ApexScaler}
    for index, (name, kind, settings, pattern) in enumerate(CASES):
        scaler = makers[kind](settings)
        overflows, scales, ends = run(scaler, steps_of(settings), pattern, np.random.RandomState(seed + index))
        assert max(scales) <= 2.0**126
        if kind == "pytorch":
            other = ApexScaler(settings)
            for overflow, scale in zip(overflows, scales):
                other.step(overflow)
                assert other.scale() == scale, name
        if "maximum" in name:
            assert max(scales) == settings["max_loss_scale"], name
        if "minimum" in name or "down to" in name:
            assert min(scales) == min(2.0 ** settings["initial_scale_power"], settings["min_loss_scale"]), name
        rule = "deepspeed" if kind == "deepspeed" else "apex"
        writer.header["cases"].append({"name": name, "rule": rule, "origin": scaler.origin, "settings": settings,
                                       "ends": ends})
        writer.add(name + "/overflow", np.array(overflows, dtype=np.int32))
        writer.add(name + "/scale", np.array(scales, dtype=np.float64))
        print(f"  {name}: {len(scales)} steps, {sum(overflows)} overflows, scales {min(scales):g} to {max(scales):g}"
              + (", ends" if ends else ""))
