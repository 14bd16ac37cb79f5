"""What the benches of this folder share: options, records, tables. Standard library only. Where they run says
bench_machine.py, how zerotrain is run bench_zerotrain.py.

A record is a JSON file: {"bench": NAME, "sessions": [...], "runs": [...]}. A session says when and where it ran: machine,
build, versions, load at its start. Each run holds the number of its session. `--add` puts a further session's runs into a
record, so that a long bench can be run in parts; `--from` makes the table of what is recorded, without running anything.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

from bench_machine import Others, build_facts, cores, disturbed, machine, statement, zerotrain_version

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOALS = pathlib.Path(__file__).resolve().parent / "goals.json"


class BenchError(Exception):
    """What the user must mend; ends the bench with 2."""


def parser_for(name, description, programs=("zerotrain",)):
    """A parser with the options that every bench has. `programs`: which programs of the build it runs."""
    parser = argparse.ArgumentParser(prog=name, description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few and short runs: whether all works, no figures to quote")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build")),
                        metavar="DIR", help=f"the build that holds {' and '.join(programs)} (build/)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write a record of every run")
    parser.add_argument("--add", action="store_true", help="keep what FILE of --json holds and add to it")
    parser.add_argument("--from", dest="recorded", type=pathlib.Path, metavar="FILE",
                        help="make the table of a record; run nothing")
    parser.add_argument("--markdown", action="store_true", help="the table in Markdown, with ratios in place of rates")
    parser.add_argument("--into", type=pathlib.Path, metavar="PAGE",
                        help="put the table in Markdown between the bench's two marks in PAGE (docs/performance.md)")
    parser.add_argument("--goals", action="store_true", help="a column with what scripts/bench/goals.json aims at")
    return parser


def count(text):
    """An option's number of things: from 1 up."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: a number from 1 up is wanted")
    return value


def duration(text):
    """An option's seconds: above 0."""
    value = float(text)
    if not value > 0.0:
        raise argparse.ArgumentTypeError(f"{text}: seconds above 0 are wanted")
    return value


def words_of(text):
    """"a,b" -> ["a", "b"]"""
    return [word.strip() for word in text.split(",") if word.strip()]


def choices(option, text, allowed):
    """The words of a list given to an option; all of them must be allowed."""
    words = words_of(text)
    for word in words:
        if word not in allowed:
            raise BenchError(f"{option} {word}: allowed are {', '.join(map(str, allowed))}")
    if not words:
        raise BenchError(f"{option} names nothing: allowed are {', '.join(map(str, allowed))}")
    return words


def numbers(option, text):
    try:
        result = [int(word) for word in words_of(text)]
    except ValueError:
        raise BenchError(f"{option} {text}: numbers with commas between them are wanted") from None
    if not result or min(result) < 1:
        raise BenchError(f"{option} {text}: numbers from 1 up are wanted")
    return result


def program(options, name, how="scripts/quickstart.sh builds it"):
    path = options.build / name
    if not os.access(path, os.X_OK):
        raise BenchError(f"{path} is not there: {how}, or name another build with --build")
    return path.resolve()


def mpirun(ranks):
    """The words that start so many ranks on this machine, or None."""
    launcher = shutil.which("mpirun") or shutil.which("mpiexec")
    if launcher is None:
        return None
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False).stdout
    words = [launcher, "-n", str(ranks)]
    if "Open MPI" in version or "OpenRTE" in version:
        words += ["--oversubscribe", "--allow-run-as-root"]
    return words


# ---- records -----------------------------------------------------------------------------------------------------------

class Record:
    def __init__(self, bench, options, versions=None):
        self.path = options.json
        if options.add and not self.path:
            raise BenchError("--add adds to a record: name it with --json FILE")
        if self.path and self.path.exists() and not self.path.is_file():
            raise BenchError(f"--json {self.path}: no file that could be replaced")
        if self.path and not self.path.parent.is_dir():
            raise BenchError(f"--json {self.path}: there is no folder {self.path.parent}")
        self.content = {"bench": bench, "sessions": [], "runs": []}
        if self.path and options.add and self.path.exists():
            self.content = read_record(self.path, bench)
        binary = options.build / "zerotrain"
        self.content["sessions"].append({
            "started": time.strftime("%Y-%m-%d %H:%M:%S %z"), "options": sys.argv[1:], "machine": machine(),
            "build": build_facts(options.build),
            "versions": {"zerotrain": zerotrain_version(binary) if binary.exists() else [], **(versions or {})},
            "load": list(os.getloadavg())})
        for line in statement(self.content["sessions"][-1]):
            say(line)

    @property
    def runs(self):
        return self.content["runs"]

    @property
    def session(self):
        return self.content["sessions"][-1]

    def take(self, run):
        """Adds a run and writes the file, so that what ran is kept whatever comes."""
        self.runs.append({**run, "session": len(self.content["sessions"]) - 1})
        self.write()

    def write(self):
        if not self.path:
            return
        new = self.path.with_name(self.path.name + ".new")
        new.write_text(json.dumps(self.content, indent=1) + "\n")
        new.replace(self.path)


def read_record(path, bench):
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise BenchError(f"{path} is no JSON: {error}") from None
    if not isinstance(content, dict) or not all(isinstance(content.get(key), list) for key in ("sessions", "runs")):
        raise BenchError(f"{path} is no record of a bench")
    if content.get("bench") != bench:
        raise BenchError(f"{path} is a record of {content.get('bench')}, not of {bench}")
    return content


def goals_of(options, bench):
    """Goals by the name of a row; nothing is judged by them."""
    return json.loads(GOALS.read_text()).get(bench, {}) if options.goals else None


# ---- tables --------------------------------------------------------------------------------------------------------------

def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def number(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def megabytes(value):
    return "" if value is None else f"{value / 1e6:.0f}"


def table(headers, rows, markdown):
    """Rows of texts; in plain text the columns are aligned, all but the first ones that hold words to the right."""
    if not rows:
        return "(no runs)"
    if markdown:
        lines = ["| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
        return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
    widths = [max(len(row[i]) for row in [headers, *rows]) for i in range(len(headers))]
    numeric = [all(re.fullmatch(r"[-+0-9.,% ]*", row[i]) for row in rows) for i in range(len(headers))]
    return "\n".join("  ".join(cell.rjust(width) if right else cell.ljust(width)
                               for cell, width, right in zip(row, widths, numeric)).rstrip() for row in [headers, *rows])


def statements(content):
    """What the runs were made on: each different machine and build once, as blocks of code."""
    seen = []
    for index, session in enumerate(content["sessions"]):
        lines = statement(session)[:-1]
        if any(run["session"] == index for run in content["runs"]) and lines not in seen:
            seen.append(lines)
    return "\n\n".join("\n".join("    " + line for line in lines) for lines in seen)


def deliver(options, content, render):
    """Prints the table, or puts it into a page. `render(runs, goals, markdown)` makes it. The exit code: 1 if nothing of
    the last session came to its end."""
    last = [run for run in content["runs"] if run["session"] == len(content["sessions"]) - 1]
    status = 0 if options.recorded or any("problem" not in run for run in last) else 1
    bench = content["bench"]
    markdown = options.markdown or options.into is not None
    text = render(content["runs"], goals_of(options, bench), markdown)
    if note := disturbed(content["runs"]):
        text += "\n\n" + note
    if markdown:
        text = statements(content) + "\n\n" + text
    if not options.into:
        print(text)
        return status
    begin, end = f"<!-- Below: written by scripts/bench/{bench}.py -->", f"<!-- End of what scripts/bench/{bench}.py wrote -->"
    try:
        page = options.into.read_text()
    except OSError as error:
        raise BenchError(f"{options.into}: {error.strerror}") from None
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise BenchError(f"{options.into} has no place for the table: two lines are wanted, {begin} and {end}")
    options.into.write_text(page[:page.index(begin)] + f"{begin}\n\n{text}\n\n" + page[page.index(end):])
    return status


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_bench(main):
    """main() of a bench: errors as one line, 2 for what the user must mend."""
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"{pathlib.Path(sys.argv[0]).stem}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
