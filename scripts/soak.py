#!/usr/bin/env python3
"""Trains a small GPT, kills its ranks at random moments, and goes on at random numbers of ranks and stages.

    scripts/soak.py [--minutes 20] [--seed N] [--binary build/zerotrain] [--directory DIR]

At the end the same config is trained once more, undisturbed, on one rank, for as many steps: weights, losses and the
samples counted must be the same to the last digit. Prints a report; exits with 1 where anything differs. Needs Python 3
alone.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CONFIG = {
    "train_batch_size": 12, "train_micro_batch_size_per_gpu": 1, "gradient_clipping": 1.0,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 50}},
    "fp16": {"enabled": True, "initial_scale_power": 24, "loss_scale_window": 50, "hysteresis": 1},
    "data_types": {"grad_accum_dtype": "fp32"},
    "model": {"type": "gpt", "n_layer": 3, "n_head": 4, "n_embd": 64, "n_positions": 32, "vocab_size": 101,
              "resid_pdrop": 0.1, "attn_pdrop": 0.1},
    "data": {"type": "synthetic", "task": "tokens", "samples": 5000},
    "training": {"max_steps": 1_000_000_000, "checkpoint_interval": 7, "checkpoints_to_keep": 3},
    "device": {"threads": 1},
}
RANKS = (1, 2, 3, 4, 5, 7)


def children(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def records(run):
    """Of metrics.jsonl, the training steps: the later record of a step counts."""
    steps = {}
    resumes = 0
    path = run / "metrics.jsonl"
    for line in path.read_text().splitlines() if path.exists() else []:
        record = json.loads(line)
        resumes += record["kind"] == "resume"
        if record["kind"] == "train":
            steps[record["step"]] = {key: record[key] for key in
                                     ("loss", "grad_norm", "learning_rate", "loss_scale", "skipped", "samples", "tokens")}
    return steps, resumes


class Soak:
    def __init__(self, options, directory):
        self.options = options
        self.random = random.Random(options.seed)
        self.directory = directory
        self.run = directory / "run"
        self.config = directory / "config.json"
        self.config.write_text(json.dumps(CONFIG))
        self.counts = collections.Counter()
        self.worlds = collections.Counter()

    def command(self, *more, output=None):
        return [str(self.options.binary), "--config", str(self.config), "--output", str(output or self.run), "--quiet", *more]

    def begin(self):
        # Other numbers of ranks cannot be dealt the micro-batches evenly, which only a run that goes on may be.
        goes_on = (self.run / "checkpoints" / "latest").exists()
        ranks = self.random.choice(RANKS if goes_on else [ranks for ranks in RANKS if 12 % ranks == 0])
        stage = self.random.randrange(4)
        self.worlds[f"{ranks} ranks, stage {stage}"] += 1
        arguments = ["--resume", "--set", f"zero_optimization.stage={stage}", "--set",
                     f"training.checkpoint_in_background={self.random.choice(('true', 'false'))}"]
        if ranks > 1:
            arguments += ["--ranks", str(ranks)]
        return subprocess.Popen(self.command(*arguments), stderr=subprocess.PIPE, text=True)

    def disturb(self, process):
        """Kills one rank, or the whole, or asks it to stop. Returns the exit codes that fit."""
        ranks = children(process.pid)
        way = self.random.choice(("rank", "rank", "all", "stop") if ranks else ("all", "stop"))
        self.counts[{"rank": "ranks killed", "all": "runs killed", "stop": "runs stopped by SIGTERM"}[way]] += 1
        if way == "rank":
            os.kill(self.random.choice(ranks), signal.SIGKILL)
            return {1}
        process.send_signal(signal.SIGKILL if way == "all" else signal.SIGTERM)
        return {-signal.SIGKILL} if way == "all" else {128 + signal.SIGTERM}

    def once(self):
        process = self.begin()
        self.counts["starts"] += 1
        try:
            process.wait(self.random.uniform(0.2, 4.0))
            raise SystemExit(f"soak: the run ended by itself: {process.returncode}\n{process.stderr.read()}")
        except subprocess.TimeoutExpired:
            pass
        fitting = self.disturb(process)
        errors = process.communicate(timeout=120)[1]
        # SIGTERM may come before the program looks out for it.
        fitting |= {-signal.SIGTERM} if 128 + signal.SIGTERM in fitting else set()
        if process.returncode not in fitting:
            raise SystemExit(f"soak: ended with {process.returncode}, not {sorted(fitting)}\n{errors}")

    def last(self):
        process = self.begin()
        time.sleep(3.0)
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=120)[1]
        if process.returncode != 128 + signal.SIGTERM:
            raise SystemExit(f"soak: the last run ended with {process.returncode}\n{errors}")
        return json.loads((self.run / "summary.json").read_text())

    def undisturbed(self, steps):
        output = self.directory / "undisturbed"
        subprocess.run(self.command("--set", f"training.max_steps={steps}", "--set", "training.checkpoint_interval=0",
                                    output=output), check=True)
        return output


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--binary", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent / "build" / "zerotrain")
    parser.add_argument("--directory", type=pathlib.Path, help="where the runs go, kept at the end (default: a new one)")
    options = parser.parse_args()
    if not options.binary.exists():
        parser.error(f"{options.binary} is not there: build it with scripts/build.sh build, or name it with --binary")
    directory = options.directory or pathlib.Path(tempfile.mkdtemp(prefix="zerotrain-soak-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {options.seed}, in {directory}", flush=True)
    soak = Soak(options, directory)
    end = time.monotonic() + 60.0 * options.minutes
    while time.monotonic() < end:
        soak.once()
    summary = soak.last()
    steps = summary["steps"]["attempted"]
    disturbed, resumes = records(soak.run)
    quiet_run = soak.undisturbed(steps)
    quiet, _ = records(quiet_run)
    quiet_summary = json.loads((quiet_run / "summary.json").read_text())

    problems = []
    if sorted(disturbed) != list(range(1, steps + 1)):
        problems.append("the records of steps have holes")
    different = [step for step in sorted(quiet) if disturbed.get(step) != quiet[step]]
    if different:
        problems.append(f"step {different[0]} differs: {disturbed.get(different[0])}, undisturbed {quiet[different[0]]}")
    if summary["weights_checksum"] != quiet_summary["weights_checksum"]:
        problems.append(f"weights {summary['weights_checksum']}, undisturbed {quiet_summary['weights_checksum']}")
    if summary["steps"] != quiet_summary["steps"]:
        problems.append(f"steps {summary['steps']}, undisturbed {quiet_summary['steps']}")
    print(f"{steps} steps, {summary['steps']['skipped']} skipped; {resumes} resumes; "
          + ", ".join(f"{count} {what}" for what, count in sorted(soak.counts.items())))
    print(f"{len(soak.worlds)} worlds: " + "; ".join(f"{world}: {count}" for world, count in sorted(soak.worlds.items())))
    print(f"weights {summary['weights_checksum']}, undisturbed {quiet_summary['weights_checksum']}")
    for problem in problems:
        print("soak: " + problem, file=sys.stderr)
    if not problems:
        print("every step, sample and weight is that of the undisturbed run")
        if options.directory is None:
            shutil.rmtree(directory)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
