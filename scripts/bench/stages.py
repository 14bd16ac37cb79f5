#!/usr/bin/env python3
"""Rate and memory of zerotrain over ZeRO stages and numbers of ranks, the cost of the global order of accumulation, and
with --growth how the cost of a token grows with width, length and vocabulary.

The models are those of configs/bench; the batch of the preset is divided among the ranks, but a sequence at least each. All
runs are made in turn, round by round; rates are medians over steps and then over rounds. Ranks are local processes; those
beyond the number of cores share them. Memory: planned and resident bytes of the rank that has most, and bytes sent by rank 0
in a step.
"""

import sys

sys.dont_write_bytecode = True

import bench_support as support
import bench_zerotrain as zerotrain
import stages_table
from bench_support import BenchError, say
from bench_zerotrain import UNTIMED_STEPS

ACCUMULATION = 4
# Head size 64; 4096 tokens a step. The values around which one is varied: width 384, length 256, vocabulary 65.
GROWTH = {"n_embd": [128, 256, 384, 512, 768], "n_positions": [64, 128, 256, 512, 1024],
          "vocab_size": [65, 1024, 8192, 32768, 50304]}
QUICK_GROWTH = {"n_embd": [64, 128], "n_positions": [32, 64], "vocab_size": [65, 130]}


def stage_runs(options, preset, dtype):
    """The runs of one round: what they are, ranks, keys."""
    for ranks in options.ranks:
        batch = zerotrain.micro_batch(preset, ranks) * ranks
        for stage in options.stages:
            yield ({"kind": "stage", "preset": preset, "dtype": dtype, "ranks": ranks, "stage": stage}, ranks,
                   [f"zero_optimization.stage={stage}", f"train_batch_size={batch}"], batch)
    if 2 not in options.ranks or options.without_orders:
        return
    micro = max(1, zerotrain.BATCH[preset] // (2 * ACCUMULATION))
    batch = micro * 2 * ACCUMULATION
    for stage in (0, 1):
        for order in ("global", "local"):
            yield ({"kind": "order", "preset": preset, "dtype": dtype, "ranks": 2, "stage": stage, "order": order}, 2,
                   [f"zero_optimization.stage={stage}", f"train_batch_size={batch}",
                    f"gradient_accumulation_steps={ACCUMULATION}", f"training.gradient_accumulation_order={order}"], batch)


def growth_runs(options, preset, dtype):
    values = QUICK_GROWTH if options.quick else GROWTH
    tokens = 512 if options.quick else 4096
    length = zerotrain.LENGTH[preset]
    for key, sizes in values.items():
        for size in sizes:
            batch = max(1, tokens // (size if key == "n_positions" else length))
            sets = [f"model.{key}={size}", f"train_batch_size={batch}"]
            if key == "n_embd":
                sets.append(f"model.n_head={max(1, size // 64)}")
            yield ({"kind": "growth", "preset": preset, "dtype": dtype, "key": key, "value": size,
                    "tokens": batch * (size if key == "n_positions" else length)}, 1, sets, batch)


def measure(options, binary, what, ranks, sets):
    config, more = zerotrain.preset_options(what["preset"])
    threads = max(1, support.cores() // ranks)
    result = zerotrain.run(binary, config, [*more, *zerotrain.PRECISIONS[what["dtype"]], *sets, *options.set,
                                            f"training.max_steps={options.steps}", f"device.threads={threads}",
                                            "device.type=cpu"], ranks, options.timeout)
    if "problem" in result:
        return result
    seconds = support.median(result["step_seconds"][UNTIMED_STEPS:])
    kinds = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
    sent = sum(result["communication"].get(kind, {"bytes": 0})["bytes"] for kind in kinds)  # of older programs, too
    return {**result, "seconds_per_step": seconds, "bytes_sent_per_step": sent / len(result["step_seconds"])}


def take_all(options, binary, record):
    for preset in options.presets:
        for dtype in options.dtypes:
            make = growth_runs if options.growth else stage_runs
            for round_number in range(1, options.rounds + 1):
                say(f"{preset}, {dtype}, round {round_number} of {options.rounds}")
                for what, ranks, sets, batch in make(options, preset, dtype):
                    others = support.Others()
                    result = measure(options, binary, what, ranks, sets)
                    if "problem" not in result:
                        tokens = what.get("tokens") or batch * zerotrain.LENGTH[preset]
                        result["rate"] = tokens / result["seconds_per_step"]
                    result["others"] = others.share()
                    zerotrain.describe(stages_table.name_of(what), result, result.get("rate"))
                    record.take({**what, "round": round_number, "batch": batch, **result})


def parse():
    parser = support.parser_for("stages", __doc__)
    parser.add_argument("--presets", help="char, 124m, tiny (char)")
    parser.add_argument("--dtypes", help="fp32, bf16, fp16 (fp32)")
    parser.add_argument("--ranks", help="(1,2,4,16)")
    parser.add_argument("--stages", default="0,1,2,3", help="(0,1,2,3)")
    parser.add_argument("--growth", action="store_true", help="cost over n_embd, n_positions and vocab_size, one rank")
    parser.add_argument("--without-orders", action="store_true", help="leave out the orders of accumulation")
    parser.add_argument("--rounds", type=support.count, help="(3)")
    parser.add_argument("--steps", type=support.count, help=f"of a run, {UNTIMED_STEPS} of them not timed (char 12, 124m 8)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the config; may be repeated")
    parser.add_argument("--timeout", type=support.duration, default=1800.0, metavar="SECONDS", help="for one run (1800)")
    options = parser.parse_args()
    quick = options.quick
    options.presets = support.choices("--presets", options.presets or ("tiny" if quick else "char"), ["char", "124m", "tiny"])
    options.dtypes = support.choices("--dtypes", options.dtypes or "fp32", list(zerotrain.PRECISIONS))
    options.ranks = support.numbers("--ranks", options.ranks or ("1,2" if quick else "1,2,4,16"))
    options.stages = [int(stage) for stage in support.choices("--stages", options.stages, ["0", "1", "2", "3"])]
    options.rounds = options.rounds or (1 if quick else 3)
    options.steps = options.steps or (UNTIMED_STEPS + 2 if quick else 8 if "124m" in options.presets else 12)
    if options.steps <= UNTIMED_STEPS:
        raise BenchError(f"--steps {options.steps}: the first {UNTIMED_STEPS} are not timed, so more are wanted")
    return options


def main():
    options = parse()
    if options.recorded:
        content = support.read_record(options.recorded, "stages")
    else:
        binary = support.program(options, "zerotrain")
        record = support.Record("stages", options)
        take_all(options, binary, record)
        content = record.content
    return support.deliver(options, content, stages_table.render)


if __name__ == "__main__":
    support.run_bench(main)
