#!/usr/bin/env python3
"""Times each operation of a GPT's training step on the CPU, and holds it against what the machine can do in the same run.

Matrix products against oneDNN's plain product of the same shape, attention against that of the MLP's first layer ("of
product"); everything else by the bytes that it must read and write, against memcpy or triad beyond the caches, whichever is
faster ("of memory": what the caches hold may exceed 1), and against a copy of as many bytes ("of copy": what is missing
there is arithmetic, or passes that could be saved). The threads are the same on both sides.
"""

import json
import subprocess
import sys

sys.dont_write_bytecode = True

import bench_support as support
from bench_support import BenchError, number, say, table


def measure(options, binary, shape, dtype, threads):
    words = [binary, "--json", "--shape", shape, "--dtype", dtype, "--threads", threads,
             "--milliseconds", options.milliseconds, "--only", options.only]
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise BenchError(f"{binary.name} failed: {result.stderr.strip()}")
    return json.loads(result.stdout)


def rows_of(runs):
    """Operations by shape, format and threads; the last run of each counts."""
    latest = {(run["shape"], run["dtype"], run["threads"]): run for run in runs}
    for (shape, dtype, threads), run in latest.items():
        for op in run["operations"]:
            product = op["bound"] == "product"
            yield {"model": shape, "precision": dtype, "threads": str(threads), "operation": op["operation"],
                   "shape": op["shape"], "microseconds": number(op["microseconds"], 1),
                   "rate": f"{op['gigaflops']:.0f} GF/s" if product else f"{op['gigabytes_per_second']:.1f} GB/s",
                   "of product": number(op.get("of_plain_product")), "of memory": number(op.get("of_memory")),
                   "of copy": number(op.get("of_copy"))}


def by_precision(runs):
    """For documents: a row for each operation, a column for each format; shares of the product, or of a copy."""
    latest = {(run["shape"], run["dtype"], run["threads"]): run for run in runs}
    dtypes = list(dict.fromkeys(run["dtype"] for run in latest.values()))
    shares = {}
    for (shape, dtype, threads), run in latest.items():
        for op in run["operations"]:
            product = op["bound"] == "product"
            key = (shape, str(threads), op["operation"], op["shape"], "product" if product else "copy")
            shares.setdefault(key, {})[dtype] = op["of_plain_product" if product else "of_copy"]
    headers = ["model", "threads", "operation", "shape", "share of", *dtypes]
    return headers, [[*key, *(number(found.get(dtype)) for dtype in dtypes)] for key, found in shares.items()]


def ceilings(runs):
    lines = []
    for run in {(run["shape"], run["dtype"], run["threads"]): run for run in runs}.values():
        c = run["ceilings"]
        lines.append(f"{run['shape']} {run['dtype']}, {run['threads']} threads: copy {c['copy_gigabytes_per_second']:.1f} GB/s, "
                     f"triad {c['triad_gigabytes_per_second']:.1f} GB/s, plain product {c['product_gigaflops']:.0f} GF/s")
    return "\n".join(lines)


def render(runs, goals, markdown):
    if markdown:
        return table(*by_precision(runs), markdown)
    rows = list(rows_of(runs))
    if goals:
        for row in rows:
            row["goal"] = goals.get("products", "") if row["of product"] and "attention, " not in row["operation"] else ""
    headers = list(rows[0]) if rows else []
    return ceilings(runs) + "\n\n" + table(headers, [list(row.values()) for row in rows], False)


def main():
    parser = support.parser_for("operations", __doc__, ("operations_bench",))
    parser.add_argument("--shapes", help="char, 124m, tiny (char,124m)")
    parser.add_argument("--dtypes", default="fp32,bf16,fp16", help="(all)")
    parser.add_argument("--threads", help="numbers of threads (all cores)")
    parser.add_argument("--only", default="", metavar="TEXT", help="operations with TEXT in their names")
    parser.add_argument("--milliseconds", type=support.count, help="that a repetition lasts (50)")
    options = parser.parse_args()
    options.milliseconds = options.milliseconds or (2 if options.quick else 50)
    if options.recorded:
        content = support.read_record(options.recorded, "operations")
    else:
        shapes = support.choices("--shapes", options.shapes or ("tiny" if options.quick else "char,124m"),
                                 ["char", "124m", "tiny"])
        dtypes = support.choices("--dtypes", options.dtypes, ["fp32", "bf16", "fp16"])
        threads = support.numbers("--threads", options.threads or str(support.cores()))
        binary = support.program(options, "operations_bench", "scripts/build.sh build -DZEROTRAIN_BENCH=ON builds it")
        record = support.Record("operations", options)
        for shape in shapes:
            for dtype in dtypes:
                for count in threads:
                    say(f"{shape}, {dtype}, {count} thread(s)")
                    others = support.Others()
                    result = measure(options, binary, shape, dtype, count)
                    if not result["operations"]:
                        raise BenchError(f"--only {options.only}: no operation has that in its name")
                    record.take({**result, "others": others.share()})
        content = record.content
    return support.deliver(options, content, render)


if __name__ == "__main__":
    support.run_bench(main)
