"""What the steps of the check share: time, processes, and what they found."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time


# What steps leave for later ones; None where a step did not come to it.
FACTS = ("card", "capability", "memory", "cuda_home", "torch", "torch_problem", "torch_process", "nccl", "nccl_root",
         "mpirun", "sanitizer", "nsys", "commit", "date", "zerotrain", "tests", "operations_bench", "trace_library",
         "test_seconds", "targets")


class Skipped(Exception):
    """A step, or a part of one, cannot be done here; the text says why."""


@dataclasses.dataclass
class Result:
    code: int
    output: str  # stdout
    errors: str  # stderr
    seconds: float
    timed_out: bool

    @property
    def ok(self):
        return self.code == 0 and not self.timed_out

    def why(self):
        """The last lines of what a failed process said, for the report."""
        lines = [line for line in (self.output + "\n" + self.errors).splitlines() if line.strip()]
        head = f"stopped after {self.seconds:.0f} s" if self.timed_out else f"ended with {self.code}"
        return "\n".join([head] + lines[-12:])


@dataclasses.dataclass
class Step:
    title: str
    limit: float  # seconds that it may take
    run: object  # function of the check


class Check:
    """Options, facts that steps hand on, and what goes into the report."""

    def __init__(self, options):
        self.options = options
        self.source = pathlib.Path(__file__).resolve().parents[2]
        self.build = pathlib.Path(options.build_dir).resolve()
        self.work = self.build / "gpu-check"  # configs, logs, traces
        self.work.mkdir(parents=True, exist_ok=True)
        self.emulated = options.emulated
        self.start = time.monotonic()
        self.end = self.start + options.budget
        self.step_end = self.end
        self.step = ""
        self.environment = dict(os.environ)
        self.plain_environment = dict(os.environ)  # for programs that are not built from unpacked packages
        self.plain_environment["LD_LIBRARY_PATH"] = os.environ.get("GPU_CHECK_LD_LIBRARY_PATH", "")
        self.facts = dict.fromkeys(FACTS)
        self.facts["date"] = time.strftime("%Y-%m-%d %H:%M %Z")
        self.failures = []  # (step, text, details)
        self.not_done = []  # (what, why)
        self.notes = []  # lines that a reader should know
        self.sections = []  # (title, seconds, lines)
        self.lines = []
        self.background = []

    # -- time

    def left(self):
        return min(self.step_end, self.end) - time.monotonic()

    # -- what the report will say

    def fail(self, text, details=""):
        print(f"gpu-check: FAILED: {text}", file=sys.stderr, flush=True)
        self.failures.append((self.step, text, details.strip()))

    def skip(self, what, why):
        print(f"gpu-check: not done: {what}: {why}", file=sys.stderr, flush=True)
        self.not_done.append((what, why))

    def say(self, text=""):
        self.lines.append(text)

    def table(self, head, rows):
        """Cells are texts or numbers; an empty table says nothing."""
        if not rows:
            return
        cell = lambda value: str(value).replace("|", "\\|").replace("\n", " ")
        self.lines.append("| " + " | ".join(map(cell, head)) + " |")
        self.lines.append("|" + "---|" * len(head))
        self.lines += ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
        self.lines.append("")

    # -- steps and processes

    def take(self, step):
        """Runs a step; whatever happens in it ends here."""
        self.step, self.lines = step.title, []
        begin = time.monotonic()
        self.step_end = min(self.end, begin + step.limit)
        print(f"gpu-check: {begin - self.start:4.0f} s  {step.title}", file=sys.stderr, flush=True)
        try:
            if self.left() < 2:
                raise Skipped("the time of the whole check was spent (--budget)")
            step.run(self)
        except Skipped as reason:
            self.skip(step.title, str(reason))
        except Exception as error:  # a step must not take the others with it
            import traceback

            self.fail(f"{type(error).__name__}: {error}", traceback.format_exc())
        self.sections.append((step.title, time.monotonic() - begin, self.lines))
        self.lines = []

    def run(self, command, limit, env=None, environment=None, directory=None, log=None):
        """Runs a program, with everything it starts, for `limit` seconds at most or what is left of the step."""
        limit = min(limit, self.left())
        if limit < 1:
            raise Skipped("the step's time was spent")
        environment = dict(environment or self.environment)
        environment.update(env or {})
        begin = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in command], cwd=directory or self.work, env=environment, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.background.append(process)
        timed_out = False
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            timed_out = True
            stop(process)
            output, errors = process.communicate()
        self.background.remove(process)
        result = Result(process.returncode, output, errors, time.monotonic() - begin, timed_out)
        if log:
            (self.work / log).write_text(" ".join(map(str, command)) + "\n" + output + errors)
        return result

    def stop_all(self):
        for process in self.background:
            stop(process)


def stop(process):
    """Ends a process and those it started: they are a session of their own."""
    for number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 3)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            continue
