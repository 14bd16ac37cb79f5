#!/usr/bin/env python3
"""Times gathers and reductions through windows beside MPI's own collectives, over mpirun with 2 and 4 ranks.

Each collective: the median over the rounds of the slowest rank's time; the ratio is MPI's time for the same by ours. Sums
are made in rank order; MPI adds in an order of its own.
"""

import json
import subprocess
import sys

sys.dont_write_bytecode = True

import bench_support as support
from bench_support import BenchError, number, say, table


def measure(options, binary, ranks):
    launch = support.mpirun(ranks)
    if launch is None:
        raise BenchError("mpirun is missing (Debian: apt-get install openmpi-bin)")
    words = [*launch, str(binary), "--json", "--megabytes", str(options.megabytes), "--rounds", str(options.rounds)]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode != 0 or "{" not in result.stdout:
        return {"ranks": ranks, "problem": (result.stderr.strip() or "no message").splitlines()[0]}
    return json.loads(result.stdout[result.stdout.index("{"):])


def render(runs, goals, markdown):
    rows, notes = [], []
    for (ranks, _), run in {(run["ranks"], run.get("bytes")): run for run in runs}.items():
        if "problem" in run:
            notes.append(f"{ranks} ranks: {run['problem']}")
            continue
        for entry in run["collectives"]:
            name = entry["collective"]
            if markdown and name.startswith("MPI_"):
                continue
            row = {"ranks": str(ranks), "MB": str(run["bytes"] >> 20), "collective": name,
                   "ms": number(entry["milliseconds"], 3), "GB/s": number(entry["gigabytes_per_second"]),
                   "MPI's time / ours" if markdown else "ratio": number(entry["ratio"]),
                   "goal": (goals or {}).get(f"{ranks} ranks: {name}", "")}
            if goals is None:
                del row["goal"]
            if markdown:
                del row["ms"], row["GB/s"]
            rows.append(row)
    text = table(list(rows[0]) if rows else [], [list(row.values()) for row in rows], markdown)
    return text + ("\n\n" + "\n".join(notes) if notes else "")


def main():
    parser = support.parser_for("collectives", __doc__, ("collectives_bench",))
    parser.add_argument("--ranks", default="2,4", help="(2,4)")
    parser.add_argument("--megabytes", type=support.count, help="of the whole buffer (64)")
    parser.add_argument("--rounds", type=support.count, help="(15)")
    options = parser.parse_args()
    options.megabytes = options.megabytes or (4 if options.quick else 64)
    options.rounds = options.rounds or (3 if options.quick else 15)
    if options.recorded:
        content = support.read_record(options.recorded, "collectives")
    else:
        ranks = support.numbers("--ranks", options.ranks)
        binary = support.program(options, "collectives_bench",
                                 "scripts/build.sh build -DZEROTRAIN_BENCH=ON builds it where MPI is")
        record = support.Record("collectives", options)
        for count in ranks:
            say(f"{count} ranks")
            others = support.Others()
            result = measure(options, binary, count)
            record.take({**result, "others": others.share()})
        content = record.content
    return support.deliver(options, content, render)


if __name__ == "__main__":
    support.run_bench(main)
