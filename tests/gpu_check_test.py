"""Runs scripts/gpu-check.sh on emulated GPUs and reads its report; with a card's steps, too, where there is no card.

    gpu_check_test.py --build-dir BUILD --out FOLDER
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

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
        for text in texts:
            self.check(text in report, f"the report does not say: {text}", report)


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
    expect.has(report, "**FAILED: ", "## Failures", "did not train", "## Times of operations")
    expect.check(report.index("## Failures") < report.index("## Versions"), "failures do not come first", report)


def without_a_card(expect, folder):
    """No card, no --emulated, nothing built: the report says so, and the exit code does."""
    if shutil.which("nvidia-smi"):
        return
    result, report = run(folder / "no-card", "--built", "--build-dir", folder / "nothing-built")
    expect.check(result.returncode == 1, f"without a card the check ended with {result.returncode}", report)
    expect.has(report, "# zerotrain on no GPU was seen", "no GPU was seen: nvidia-smi is missing", "zerotrain was not built",
               "Training at all stages: the program or its backend was not built")


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
    return 1 if expect.failed else 0


if __name__ == "__main__":
    sys.exit(main())
