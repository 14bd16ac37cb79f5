"""Step 5: which streams worked at the same time. Recorded by nsys, or else by CUPTI (scripts/bench/gpu_trace)."""

import collections
import csv
import sqlite3

import configs
import training
from runner import Skipped

# A stream whose kernels run for this part of the busiest one's is a compute stream.
COMPUTE_SHARE = 0.2


def from_csv(path):
    """[(stream, kind, start, end, name)], of gpu_trace."""
    with open(path, newline="") as file:
        return [((int(row["context"]), int(row["stream"])), row["kind"], int(row["start"]), int(row["end"]), row["name"])
                for row in csv.DictReader(file)]


def from_sqlite(path):
    """The same, of nsys export --type sqlite."""
    memory = {0: "pageable", 1: "pinned", 2: "device"}
    base = sqlite3.connect(path)
    tables = {name for (name,) in base.execute("select name from sqlite_master where type = 'table'")}
    work = []
    if "CUPTI_ACTIVITY_KIND_KERNEL" in tables:
        query = ("select contextId, streamId, start, end, value from CUPTI_ACTIVITY_KIND_KERNEL "
                 "left join StringIds on StringIds.id = shortName")
        work += [((c, s), "kernel", a, b, name or "") for c, s, a, b, name in base.execute(query)]
    if "CUPTI_ACTIVITY_KIND_MEMCPY" in tables:
        query = "select contextId, streamId, start, end, srcKind, dstKind from CUPTI_ACTIVITY_KIND_MEMCPY"
        work += [((c, s), "copy", a, b, f"{memory.get(x, 'other')} to {memory.get(y, 'other')}")
                 for c, s, a, b, x, y in base.execute(query)]
    base.close()
    return work


def union(intervals):
    """Disjoint intervals, in order, that cover the same."""
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(intervals):
    return sum(end - start for start, end in intervals)


def common(a, b):
    """Length of what two lists of disjoint intervals share."""
    total, i, j = 0, 0, 0
    while i < len(a) and j < len(b):
        total += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def overlap(work):
    """Rows for the report, one a stream: (stream, role, busy ms, part that ran beside a compute stream, what it did)."""
    streams = collections.defaultdict(list)
    for stream, kind, start, end, name in work:
        streams[stream].append((kind, start, end, name))
    kernels = {stream: length(union([(start, end) for kind, start, end, _ in items if kind == "kernel"]))
               for stream, items in streams.items()}
    busiest = max(kernels.values(), default=0)
    compute = {stream for stream, time in kernels.items() if busiest and time >= COMPUTE_SHARE * busiest}
    computing = union([(start, end) for stream in compute for kind, start, end, _ in streams[stream] if kind == "kernel"])
    rows = []
    for stream, items in sorted(streams.items()):
        busy = union([(start, end) for _, start, end, _ in items])
        what = collections.Counter()
        for kind, start, end, name in items:
            what[name if kind == "copy" else kind] += end - start
        most = ", ".join(f"{name} {time / 1e6:.2f} ms" for name, time in what.most_common(3))
        hidden = "" if stream in compute else f"{100 * common(busy, computing) / max(1, length(busy)):.0f} %"
        rows.append((f"{stream[1]}" + (f" (context {stream[0]})" if len({s[0] for s in streams}) > 1 else ""),
                     "compute" if stream in compute else "other", f"{length(busy) / 1e6:.2f}", hidden, most))
    return rows


def record(check, command, name, limit):
    """The work on the card while a command runs, and what recorded it."""
    if check.facts["nsys"]:
        prefix = check.work / name
        traced = check.run([check.facts["nsys"], "profile", "--trace=cuda", "--sample=none", "--cpuctxsw=none",
                            "--force-overwrite=true", f"--output={prefix}", *command], limit)
        exported = check.run([check.facts["nsys"], "export", "--type=sqlite", "--force-overwrite=true",
                              f"--output={prefix}.sqlite", f"{prefix}.nsys-rep"], 30) if traced.ok else traced
        if exported.ok:
            return from_sqlite(f"{prefix}.sqlite"), "nsys"
        check.say(f"nsys is there and does not work ({exported.why().splitlines()[-1]}).")
    library = check.facts["trace_library"]
    if not library:
        raise Skipped("neither nsys nor CUPTI (gpu_trace) can record here")
    path = check.work / f"{name}.csv"
    path.unlink(missing_ok=True)
    traced = check.run(command, limit, env={"CUDA_INJECTION64_PATH": str(library), "ZEROTRAIN_GPU_TRACE": str(path)})
    if not traced.ok:
        raise RuntimeError("the traced run failed: " + traced.why())
    work = from_csv(path) if path.exists() else []
    if not work:
        raise Skipped("CUPTI recorded nothing: " + traced.why())
    return work, "CUPTI"


def numbers_of_program(check, config):
    """Without a trace: the phases that the program times itself."""
    summary, result = training.train(check, config, "bf16", training.CUDA, "phases", limit=60)
    if not summary:
        check.fail("the run for the phases' times failed", result.why())
        return
    seconds = summary["seconds"]
    check.say("What the program itself measured, which is no trace:")
    check.say()
    check.table(("phase", "seconds"), [(name, f"{seconds[name]:.3f}") for name in
                                       ("train", "forward", "backward", "optimizer", "communication_exposed", "data_wait")
                                       if seconds[name] is not None])


def run(check):
    if check.emulated:
        raise Skipped("emulated GPUs run one operation at a time; that events order them is shown by lazy streams")
    if not check.facts["zerotrain"] or not check.facts["card"]:
        raise Skipped("no GPU was seen" if check.facts["zerotrain"] else "the program was not built")
    shape = dict(configs.SHAPES["124M"], layers=6)
    config = configs.write(check, "trace", configs.speed_config(shape, 8, 6))
    program = [check.facts["zerotrain"]]
    device = ["--set", 'device.type="cuda"', "--set", "bf16.enabled=true", "--set", "zero_optimization.stage=3"]
    cases = []
    if check.facts["nccl"]:
        cases.append(("one rank of NCCL at stage 3: gathers and reductions within the card, the next batch's copy",
                      [*program, "--config", config, *device, "--set", 'device.communicator="nccl"', "--quiet", "--overwrite",
                       "--output", check.work / "run-trace"]))
    cases.append(("two ranks at stage 3 that share the card: their data go through the host's memory",
                  [*program, "prove", "--config", config, *device, "--set", "train_batch_size=8", "--set",
                   "train_micro_batch_size_per_gpu=4", "--ranks", "2", "--stages", "3", "--steps", "4"]))
    check.say("One card shows no transfer between cards. Seen are the copy of the next batch, and what ranks on one card "
              "copy. For each stream that does not compute, the part of its busy time in which a compute stream's kernel "
              "ran (of any rank):")
    check.say()
    recorded = False
    for number, (title, command) in enumerate(cases):
        try:
            work, by = record(check, command, f"trace-{number}", 40)
        except Skipped as reason:
            check.skip(f"trace of {title.split(':')[0]}", str(reason))
            continue
        except RuntimeError as error:
            check.fail(f"trace of {title.split(':')[0]}", str(error))
            continue
        recorded = True
        check.say(f"{title[0].upper()}{title[1:]} (6 layers of GPT-2 124M, by {by}, {len(work)} pieces of work):")
        check.say()
        check.table(("stream", "role", "busy, ms", "beside compute", "what"), overlap(work))
    if not recorded:
        numbers_of_program(check, config)
