#!/usr/bin/env python3
"""Reads the event files of real runs with TensorBoard's own package: what it shows is what metrics.jsonl has.

    python scripts/compare/tensorboard_events.py [--zerotrain build/zerotrain]

In a virtual environment that has tensorboard. A run in fp16 that skips steps and is resumed from a checkpoint before its
last step (whose points come anew), with evaluations, and one that classifies. Ends with 1 where something differs.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

GPT = {
    "train_batch_size": 4,
    "fp16": {"enabled": True, "initial_scale_power": 20},
    "optimizer": {"type": "AdamW", "params": {"lr": 2e-3}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}},
    "model": {"type": "gpt", "n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 8, "vocab_size": 31},
    "data": {"type": "synthetic", "task": "tokens", "samples": 100},
    "tensorboard": {"enabled": True},
    "training": {"max_steps": 19, "eval_interval": 4, "eval_steps": 1, "checkpoint_interval": 4},
    "device": {"type": "cpu", "threads": 1},
}
CLASSES = {
    "train_batch_size": 4,
    "model": {"type": "mlp", "layers": [8, 9, 3], "loss": "cross_entropy"},
    "data": {"type": "synthetic", "task": "regression", "samples": 100},
    "tensorboard": {"enabled": True, "output_path": "boards", "job_name": "classes"},
    "training": {"max_steps": 6, "eval_interval": 3, "eval_steps": 2},
    "device": {"type": "cpu", "threads": 1},
}


def train(program, folder, config, *arguments):
    (folder / "config.json").write_text(json.dumps(config))
    result = subprocess.run([program, "--config", "config.json", "--output", "run", *arguments], cwd=folder,
                            capture_output=True, text=True, timeout=600)
    if result.returncode != 0:
        sys.exit(result.stderr)


def recorded(run):
    curves, samples = {}, {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] == "train":
            at = samples[record["step"]] = record["samples"]
            names = {"loss": "train_loss", "learning_rate": "lr"}
            if json.loads((run / "config.resolved.json").read_text())["fp16"]["enabled"]:
                names["loss_scale"] = "loss_scale"
            for name, tag in names.items():
                curves.setdefault(f"Train/Samples/{tag}", {})[at] = record[name]
        elif record["kind"] == "eval":
            for name in ("loss", "accuracy"):
                if name in record:
                    curves.setdefault(f"Validation/Samples/{name}", {})[samples[record["step"]]] = record[name]
    return curves


def shown(folder):
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    accumulator.Reload()
    curves = {}
    for tag in accumulator.Tags()["scalars"]:
        events = accumulator.Scalars(tag)
        curves[tag] = {event.step: event.value for event in events}
        if len(curves[tag]) != len(events):
            sys.exit(f"{tag} has two points over the same samples")
    return curves


def compare(name, folder, run):
    expected, found = recorded(run), shown(folder)
    points = sum(map(len, found.values()))
    print(f"{name}: {len(found)} curves, {points} points, {len(list(folder.iterdir()))} file(s)")
    # Of nine digits and of a float's: TensorBoard has floats.
    same = {tag: expected[tag].keys() == found.get(tag, {}).keys()
                 and all(math.isclose(value, found[tag][step], rel_tol=1.2e-7) for step, value in points.items())
            for tag, points in expected.items()}
    if expected.keys() != found.keys() or not all(same.values()):
        for tag in sorted(expected.keys() | found.keys()):
            if not same.get(tag, False):
                print(f"  {tag} differs:\n    recorded {expected.get(tag)}\n    shown    {found.get(tag)}")
        sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--zerotrain", default="build/zerotrain")
    program = pathlib.Path(parser.parse_args().zerotrain).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        train(program, folder, GPT)
        # As after a crash: the newest checkpoint is older than the last step.
        (folder / "run" / "summary.json").unlink()
        (folder / "run" / "checkpoints" / "latest").write_text("step-00000016\n")
        train(program, folder, GPT, "--resume", "--set", "training.max_steps=24")
        compare("fp16, resumed", folder / "run" / "tensorboard" / "DeepSpeedJobName", folder / "run")
        train(program, folder, CLASSES, "--overwrite")
        compare("classes", folder / "boards" / "classes", folder / "run")


if __name__ == "__main__":
    main()
