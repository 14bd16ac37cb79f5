"""The steps of scripts/gpu-check.sh, which prepares what they need and starts this."""

import argparse
import os
import pathlib
import signal
import sys

import build
import operation_tests
import pytorch
import report
import speed
import timeline
import training
import versions
from runner import Check, Step


USUAL_BUDGET = 460.0  # seconds, with which the limits of the steps below belong


def parse():
    parser = argparse.ArgumentParser(prog="gpu-check")
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--budget", type=float, default=USUAL_BUDGET)
    parser.add_argument("--jobs", default=str(os.cpu_count() or 1))
    parser.add_argument("--python", default="python3")
    parser.add_argument("--tests", default="")
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--built", action="store_true")
    parser.add_argument("--without-pytorch", action="store_true")
    parser.add_argument("--note", action="append", default=[])
    return parser.parse_args()


def build_beside_pytorch(check):
    """PyTorch compiles its model while ours is built: both use the processor, nothing is timed."""
    pytorch.start_torch(check)
    build.run(check)


# The costly ones last: what the time does not suffice for is what comes at the end.
STEPS = [
    Step("Versions", 60, versions.run),
    Step("Build", 200, build_beside_pytorch),
    Step("Operations against the CPU", 60, operation_tests.run),
    Step("Training at all stages", 100, training.run),
    Step("Times of operations", 45, speed.operations),
    Step("Speed of GPT-2 124M", 90, speed.small),
    Step("Trace", 40, timeline.run),
    Step("Speed of GPT-2 1.5B", 150, speed.large),
    Step("Sanitizers", 60, operation_tests.sanitize),
]
EMULATED_STEPS = STEPS[:5]  # speeds and sanitizers say nothing there, and the report says so


def main():
    options = parse()
    check = Check(options)
    check.notes += options.note
    folder = pathlib.Path(os.environ.get("OUT") or check.build)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "gpu-check-report.md"

    def stopped(number, _):
        check.stop_all()
        report.write(check, path, finished=False)
        print(f"gpu-check: stopped; what was found until then is in {path}", file=sys.stderr)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, stopped)
    signal.signal(signal.SIGINT, stopped)
    for step in EMULATED_STEPS if check.emulated else STEPS:
        scale = max(1.0, options.budget / USUAL_BUDGET)  # who gives more time has a slower machine
        check.take(Step(step.title, step.limit * scale, step.run))
        report.write(check, path, finished=False)
    check.stop_all()
    if check.emulated:
        for step in STEPS[5:]:
            check.skip(step.title, "emulated GPUs: kernels run on the CPU, one thread at a time")
    print(report.write(check, path, finished=True))
    print(f"gpu-check: the report is {path}", file=sys.stderr)
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
