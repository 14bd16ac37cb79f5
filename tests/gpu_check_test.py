"""Runs scripts/gpu-check.sh on emulated GPUs and reads its report; with a card's steps, too, where there is no card.

    gpu_check_test.py --build-dir BUILD --out FOLDER
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(__file__).resolve().parents[1]


def run(folder, *options, **environment):
    """The check's process, and its report."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "gpu-check-report.md"
    report.unlink(missing_ok=True)
    result = subprocess.run(
        [SOURCE / "scripts/gpu-check.sh", *map(str, options)], env={**os.environ, "OUT": str(folder), **environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=False)
    return result, report.read_text() if report.exists() else ""


class Expectations:
    def __init__(self):
        self.failed = False

    def check(self, holds, what, text=""):
        if not holds:
            print(f"FAILED: {what}\n{text}", file=sys.stderr)
            self.failed = True

    def has(self, report, *texts):
        missing = [text for text in texts if text not in report]
        self.check(not missing, "the report does not say: " + "\n  ".join(missing), report)


def emulated(expect, build, folder):
    result, report = run(folder / "emulated", "--emulated", "--built", "--build-dir", build, "--tests", "*squared error*")
    expect.check(result.returncode == 0, f"the check ended with {result.returncode}", result.stdout + result.stderr)
    expect.check(report.strip() == result.stdout.strip(), "what is printed is not the report")
    expect.has(report, "# zerotrain on emulated GPUs", "passed on emulated GPUs; no GPU was", "one curve", "close",
               "2 local processes, staged | the same bits", "1 rank of NCCL | the same bits", "operations ran at tiny shapes",
               "## Not done, and why", "Speed of GPT-2 1.5B: emulated GPUs", "tests passed.")
    if shutil.which("mpirun"):
        expect.has(report, "2 ranks of NCCL, emulated GPUs | the same bits", "2 ranks over MPI, staged | the same bits")
    expect.check("## Failures" not in report, "there are failures", report)


def failing(expect, build, folder):
    """A launch that fails is the first thing that the report says, and the steps after it are done all the same."""
    result, report = run(folder / "failing", "--emulated", "--built", "--build-dir", build, "--tests", "*squared error*",
                         ZEROTRAIN_EMULATION_FAIL="launch:5")
    expect.check(result.returncode == 1, f"the check ended with {result.returncode} although launches failed", report)
    expect.has(report, "**FAILED: ", "## Failures", "did not train", "**Times of operations**: gpu_operations tiny failed")
    expect.check(report.index("## Failures") < report.index("## Versions"), "failures do not come first", report)


def without_a_card(expect, folder):
    """No card, no --emulated, nothing built: the report says so, and the exit code does."""
    if shutil.which("nvidia-smi"):
        return
    result, report = run(folder / "no-card", "--built", "--build-dir", folder / "nothing-built")
    expect.check(result.returncode == 1, f"without a card the check ended with {result.returncode}", report)
    expect.has(report, "# zerotrain on no GPU was seen", "no GPU was seen: nvidia-smi is missing", "zerotrain was not built",
               "Training at all stages: the program or its backend was not built")


# PyTorch's side as gpu_pytorch.py speaks, at a speed of its own; its larger model does not fit.
PYTORCH = r'''#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    command = json.loads(line)
    if "prepare" in command or "compile" in command:
        model = command.get("prepare") or command["compile"]
        answer = {"batch": 2} if model == "124M" else {"error": "OutOfMemoryError: too large"}
    else:
        answer = {"tokens_per_second": 123.0, "batch": 2} if "measure" in command else {}
    print(json.dumps({**answer, "id": command["id"]}), flush=True)
'''
# nsys as far as the check uses it: runs the program, and makes up what it did.
NSYS = r'''#!/usr/bin/env python3
import pathlib, sqlite3, subprocess, sys
if sys.argv[1] == "profile":
    sys.exit(subprocess.call([word for word in sys.argv[2:] if not word.startswith(("--trace", "--sample", "--cpuctxsw",
                                                                                    "--force", "--output="))]))
path = pathlib.Path(next(word for word in sys.argv if word.startswith("--output=")).split("=")[1])
path.unlink(missing_ok=True)
base = sqlite3.connect(path)
base.execute("create table StringIds (id, value)")
base.execute("create table CUPTI_ACTIVITY_KIND_KERNEL (contextId, streamId, start, end, shortName)")
base.execute("create table CUPTI_ACTIVITY_KIND_MEMCPY (contextId, streamId, start, end, srcKind, dstKind)")
base.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values (1, 13, 0, 1000000, 5)")
base.execute("insert into CUPTI_ACTIVITY_KIND_MEMCPY values (1, 14, 500000, 1500000, 1, 2)")
base.commit()
'''


def with_a_made_up_card(expect, build, folder):
    """The steps that take a card, on an emulated one and with others' programs made up: their commands are right ones."""
    sys.path.insert(0, str(SOURCE / "scripts/gpu-check"))
    import configs
    import pytorch
    import report
    import speed
    import timeline
    import build as build_step
    from runner import Check, Step

    configs.SHAPES = {name: {"layers": 1, "heads": 1, "width": 32, "micro_batches": [2], "steps": 6} for name in configs.SHAPES}
    configs.LENGTH, configs.VOCABULARY = 16, 64
    folder.mkdir(parents=True, exist_ok=True)
    programs = {}
    for name, text in (("pytorch", PYTORCH), ("nsys", NSYS)):
        programs[name] = folder / name
        programs[name].write_text(text)
        programs[name].chmod(0o755)
    check = Check(argparse.Namespace(build_dir=build, emulated=True, budget=300.0, tests="", built=True, without_pytorch=False,
                                     python=str(programs["pytorch"])))
    check.take(Step("Build", 30, build_step.run))
    check.emulated = False
    check.facts.update(card="NVIDIA H200", memory=141e9, nccl="2.28.9", torch="2.0", nsys=str(programs["nsys"]))
    pytorch.start_torch(check)
    for step in (Step("small", 100, speed.small), Step("large", 100, speed.large), Step("trace", 60, timeline.run)):
        check.take(step)
    check.facts["torch_process"].close()
    text = report.write(check, folder / "report.md", finished=True)
    expect.check(not check.failures, "there are failures", text)
    expect.has(text, "# zerotrain on NVIDIA H200", "| 124M | PyTorch | bf16 autocast | 0.1 |",
               "| 124M | PyTorch | bf16 weights, fp32 masters | 0.1 |", "zerotrain / PyTorch (bf16 autocast): ",
               "| 124M | zerotrain | fp16, gelu_epilogue |", "| 1.5B | zerotrain | bf16 |", "NOT REACHED",
               "PyTorch, GPT-2 1.5B, bf16 autocast: OutOfMemoryError", "One rank of NCCL at stage 3",
               "Two ranks at stage 3", "| 14 | other | 1.00 | 50 % | pinned to device 1.00 ms |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.out)
    expect = Expectations()
    emulated(expect, arguments.build_dir, folder)
    failing(expect, arguments.build_dir, folder)
    without_a_card(expect, folder)
    with_a_made_up_card(expect, arguments.build_dir, folder / "made-up")
    return 1 if expect.failed else 0


if __name__ == "__main__":
    sys.exit(main())
