#!/usr/bin/env python3
"""The seconds of a step that `zerotrain estimate --from RUN` predicts, against measured ones.

For each number of ranks a run of one stage is measured, the other stages are predicted from it and measured in turn with
it, round by round; the ratio is predicted over measured, of medians. Predictions for other numbers of ranks assume that each
rank keeps its cores, so they are made only between numbers of ranks that the machine has cores for (one thread each).
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import bench_support as support
import bench_zerotrain as zerotrain
from bench_support import BenchError, say
from bench_zerotrain import UNTIMED_STEPS


def keys_of(options, preset, ranks, stage):
    batch = zerotrain.micro_batch(preset, ranks) * ranks
    return [f"zero_optimization.stage={stage}", f"train_batch_size={batch}", f"training.max_steps={options.steps}",
            "device.threads=1", "device.type=cpu", *options.set]


def measure(options, binary, folder, preset, ranks, stage):
    """A run that leaves its directory; its median step, without waits for data."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config, more = zerotrain.preset_options(preset)
    result = zerotrain.run_in(folder, binary, config, [*more, *keys_of(options, preset, ranks, stage)], ranks,
                              options.timeout)
    if "problem" in result:
        raise BenchError(f"{preset}, {ranks} ranks, stage {stage}: {result['problem']}")
    return support.median(result["step_seconds"][UNTIMED_STEPS:])


def predictions(binary, folder, world_sizes, stages):
    """{(ranks, stage): seconds} by the rates of a run."""
    command = [str(binary), "estimate", "--from", str(folder / "run"), "--json",
               "--world-size", ",".join(map(str, world_sizes)), "--stages", ",".join(map(str, stages))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(zerotrain.last_line(done.stderr))
    return {(row["world_size"], row["stage"]): row["prediction"]["step_seconds"] for row in json.loads(done.stdout)}


def source_of(ranks, stage):
    return f"{ranks} rank{'s' if ranks > 1 else ''}, stage {stage}"


def take_round(options, binary, record, preset, ranks, round_number, folder):
    others = support.Others()
    runs = {stage: folder / f"{preset}-{ranks}-{stage}" for stage in options.stages}
    measured = {stage: measure(options, binary, runs[stage], preset, ranks, stage) for stage in options.stages}
    base = options.stages[0]
    predicted = predictions(binary, runs[base], [ranks], options.stages)
    for stage in options.stages:
        record.take({"kind": "stage", "preset": preset, "ranks": ranks, "stage": stage, "from": source_of(ranks, base),
                     "predicted": predicted[ranks, stage], "measured": measured[stage], "round": round_number,
                     "others": others.share()})
        say(f"  {source_of(ranks, stage)}: predicted {predicted[ranks, stage]:.3f} s, measured {measured[stage]:.3f} s")
    return measured, runs[base]


def take_all(options, binary, record):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="zerotrain-bench-"))
    try:
        for preset in options.presets:
            for round_number in range(1, options.rounds + 1):
                say(f"{preset}, round {round_number} of {options.rounds}")
                measured = {ranks: take_round(options, binary, record, preset, ranks, round_number, folder)
                            for ranks in options.ranks}
                take_other_ranks(options, binary, record, preset, round_number, measured)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def take_other_ranks(options, binary, record, preset, round_number, measured):
    """From the most ranks that have a core each to fewer."""
    fitting = [ranks for ranks in options.ranks if 1 < ranks <= support.cores()]
    if not fitting:
        return
    source = max(fitting)
    for ranks in options.ranks:
        if ranks >= source:
            continue
        predicted = predictions(binary, measured[source][1], [ranks], options.stages)
        for stage in options.stages:
            record.take({"kind": "ranks", "preset": preset, "ranks": ranks, "stage": stage,
                         "from": source_of(source, options.stages[0]), "predicted": predicted[ranks, stage],
                         "measured": measured[ranks][0][stage], "round": round_number})


def render(runs, _goals, markdown):
    groups = {}
    for run in runs:
        groups.setdefault((run["preset"], run["from"], run["ranks"], run["stage"]), []).append(run)
    rows = []
    for (preset, source, ranks, stage), group in groups.items():
        ratio = support.median(run["predicted"] for run in group) / support.median(run["measured"] for run in group)
        rows.append([preset, source, str(ranks), str(stage), str(len(group)), support.number(ratio)])
    return support.table(["model", "rates of the run on", "ranks", "stage", "rounds", "predicted / measured"], rows, markdown)


def parse():
    parser = support.parser_for("predictions", __doc__)
    parser.add_argument("--presets", help="char, 124m, tiny (char)")
    parser.add_argument("--ranks", help="(1,2,4,8)")
    parser.add_argument("--stages", default="1,0,2,3", help="the first is the one that is predicted from (1,0,2,3)")
    parser.add_argument("--rounds", type=support.count, help="(3)")
    parser.add_argument("--steps", type=support.count, help=f"of a run, {UNTIMED_STEPS} of them not timed (10)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the config; may be repeated")
    parser.add_argument("--timeout", type=support.duration, default=1800.0, metavar="SECONDS", help="for one run (1800)")
    options = parser.parse_args()
    quick = options.quick
    options.presets = support.choices("--presets", options.presets or ("tiny" if quick else "char"), ["char", "124m", "tiny"])
    options.ranks = support.numbers("--ranks", options.ranks or ("1,2" if quick else "1,2,4,8"))
    options.stages = [int(stage) for stage in support.choices("--stages", options.stages, ["0", "1", "2", "3"])]
    options.rounds = options.rounds or (1 if quick else 3)
    options.steps = options.steps or (UNTIMED_STEPS + 2 if quick else 10)
    if options.steps <= UNTIMED_STEPS:
        raise BenchError(f"--steps {options.steps}: the first {UNTIMED_STEPS} are not timed, so more are wanted")
    return options


def main():
    options = parse()
    if options.recorded:
        content = support.read_record(options.recorded, "predictions")
    else:
        binary = support.program(options, "zerotrain")
        record = support.Record("predictions", options)
        take_all(options, binary, record)
        content = record.content
    return support.deliver(options, content, render)


if __name__ == "__main__":
    support.run_bench(main)
