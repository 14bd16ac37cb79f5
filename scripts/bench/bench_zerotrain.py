"""Runs zerotrain for the benches and reads what it leaves behind."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import time

from bench_support import ROOT, say

UNTIMED_STEPS = 3  # the first ones allocate and warm up, in every program that is compared

# A scale that fits at once: skipped steps would be shorter than real ones.
PRECISIONS = {"fp32": [], "bf16": ["bf16.enabled=true"], "fp16": ["fp16.enabled=true", "fp16.initial_scale_power=12"]}

# The models of configs/bench: sequences of a global batch and tokens of a sequence. The tiny one is for trying things.
BATCH = {"char": 16, "124m": 1, "tiny": 16}
LENGTH = {"char": 256, "124m": 1024, "tiny": 32}
TINY = ["model.n_layer=2", "model.n_head=2", "model.n_embd=64", "model.n_positions=32"]


def preset_options(preset):
    """The config of a preset, and keys to be set over it."""
    return ROOT / "configs/bench" / f"{'char' if preset == 'tiny' else preset}.json", TINY if preset == "tiny" else []


def micro_batch(preset, ranks):
    """The preset's batch divided among the ranks, but a sequence at least."""
    return max(1, BATCH[preset] // ranks)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def first_result(process, metrics):
    """When (seconds of the clock) the first step was over: its line in metrics.jsonl."""
    while process.poll() is None:
        try:
            if metrics.stat().st_size > 0:
                return time.time()
        except OSError:
            pass
        time.sleep(0.001)
    return None


def run(binary, config, sets, ranks=1, timeout=None):
    """One run of its own. The result has a "problem", in one line, where it did not come to its end."""
    folder = tempfile.mkdtemp(prefix="zerotrain-bench-")
    try:
        return run_in(folder, binary, config, sets, ranks, timeout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_in(folder, binary, config, sets, ranks, timeout):
    output, log = pathlib.Path(folder) / "run", pathlib.Path(folder) / "log"
    command = [str(binary), "--quiet", "--config", str(config), "--output", str(output)]
    if ranks > 1:
        command += ["--ranks", str(ranks)]
    for key in sets:
        command += ["--set", key]
    with open(log, "wb") as stream:
        start = time.time()
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
        try:
            first = first_result(process, output / "metrics.jsonl")
            process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            return {"problem": f"not done after {timeout:.0f} s"}
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode != 0:
        return {"problem": last_line(log.read_text(errors="replace"))[:200]}
    summary = json.loads((output / "summary.json").read_text())
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    steps = [line["step_seconds"] for line in lines if line["kind"] == "train"]
    ranks_memory = summary["memory"]["ranks"]
    categories = ("parameters", "gradients", "optimizer", "activations", "communication", "data", "workspace")
    result = {
        "step_seconds": steps if len(steps) <= 200 else [],
        "train_seconds": summary["seconds"]["train"],
        "startup_seconds": summary["seconds"]["startup"],  # as the program counts it
        "loss": summary["final"]["loss"],
        "parameters": summary["model"]["parameters"],
        "planned": [sum(rank[name] for name in categories) for rank in ranks_memory],
        "planned_by_category": {name: ranks_memory[0][name] for name in categories},
        "resident": [rank["peak_resident"] for rank in ranks_memory],
        "peak_resident": sum(rank["peak_resident"] for rank in ranks_memory),
        "utilization": summary["throughput"].get("utilization"),
        "flops_per_second": summary["throughput"].get("model_flops_per_second"),
        "communication": summary["communication"],
        "weights_checksum": summary["weights_checksum"],
        "run": summary["run"],
    }
    if first is not None:
        result["seconds_to_first_result"] = first - start
        result["seconds_to_first_step"] = first - steps[0] - start
    return result


def describe(name, result, rate, unit="tokens/s"):
    """A line about a run, for who waits."""
    if "problem" in result:
        say(f"  {name}: {result['problem']}")
    else:
        others = result.get("others") or 0.0
        say(f"  {name}: {rate:.1f} {unit}, {result['peak_resident'] / 1e6:.0f} MB"
            + (f" (other programs had {others:.0%} of the processors)" if others > 0.1 else ""))
