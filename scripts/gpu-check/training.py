"""Step 4: both models at every stage, in every precision, on 1, 2 and 4 ranks that share the card; then NCCL."""

import json

import configs
from runner import Skipped

# Of the last loss, relative to the CPU's. In these steps the loss comes down by 13 % (GPT) and 30 % (MLP). On one CPU the
# same run in bf16, fp16 and fp32 ends within 3.2e-3 of each other, where Adam has made much of roundings of gradients near
# 0; two devices that round to the same format and add in other orders are closer (7e-5 in bf16 on emulated GPUs). In fp32
# they differ by orders of adding alone (5e-9 there).
TOLERANCES = {"fp32": 1e-4, "bf16": 4e-3, "fp16": 4e-3}
CUDA = ["--set", 'device.type="cuda"']


def prove(check, config, precision, ranks, stages, more, limit=60, env=None):
    """Rows of `zerotrain prove`, and the process."""
    result = check.run([check.facts["zerotrain"], "prove", "--config", config, *configs.precision_sets(precision),
                        "--ranks", ranks, "--stages", stages, "--steps",
                        configs.STEPS, "--json", *more], limit, env=env)
    try:
        return json.loads(result.output), result
    except ValueError:
        return [], result


def train(check, config, precision, more, name, limit=60, command=(), env=None):
    """One run's summary, or None, and the process."""
    output = check.work / f"run-{name}"
    result = check.run([*command, check.facts["zerotrain"], "--config", config, *configs.precision_sets(precision),
                        "--output", output, "--overwrite", "--quiet", *more], limit, env=env)
    summary = output / "summary.json"
    if not result.ok or not summary.exists():
        return None, result
    return json.loads(summary.read_text()), result


def curves(check, paths, precisions, ranks, stages):
    """One curve per model and precision; the checksum that others must reach: (model, precision) -> text."""
    rows, expected = [], {}
    for model, path in paths.items():
        for precision in precisions:
            table, result = prove(check, path, precision, ranks, stages, CUDA)
            title = f"{model} {precision}"
            if not table:
                check.fail(f"{title}: ranks on the card did not train", result.why())
                rows.append((model, precision, "failed", "", "", "", ""))
                continue
            reference, cpu = prove(check, path, precision, "1", "0", ["--set", 'device.type="cpu"'])
            same = all(row["same"] for row in table)
            planned = all(row["bytes_held"] == row["bytes_planned"] and row["elements_sent"] == row["elements_planned"]
                          for row in table)
            skipped = table[0]["skipped"]
            if not same:
                differing = [f"{row['ranks']} ranks, stage {row['stage']}: loss {row['loss']}, weights "
                             f"{row['weights_checksum']}" for row in table if not row["same"]]
                check.fail(f"{title}: the curves of ranks or stages differ on the card",
                           "\n".join([f"first row: loss {table[0]['loss']}, weights {table[0]['weights_checksum']}",
                                      *differing]))
            elif not planned:
                check.fail(f"{title}: a row holds or sends something else than planned")
            elif result.code != 0:
                check.fail(f"{title}: zerotrain prove failed", result.why())
            if same:
                expected[model, precision] = table[0]["weights_checksum"]
            difference, verdict = compare(check, title, table, reference, cpu, TOLERANCES[precision])
            rows.append((model, precision, f"{len(table)} runs, " + ("one curve" if same else "DIFFER"),
                         table[0]["loss"], difference, f"{TOLERANCES[precision]:.1e}", verdict +
                         (f", {skipped} steps skipped" if skipped else "")))
    check.say(f"Ranks {ranks} as threads that share the card (device.communicator \"staged\"), stages {stages}, {configs.STEPS} steps. "
              "Last loss against the CPU's of the same config, as a part of it:")
    check.say()
    check.table(("model", "precision", "on the card", "last loss", "from the CPU's", "allowed", "verdict"), rows)
    return expected


def compare(check, title, table, reference, cpu, tolerance):
    if not reference:
        check.fail(f"{title}: the CPU's run failed", cpu.why())
        return "?", "no CPU run"
    mine, theirs = table[0]["loss"], reference[0]["loss"]
    if mine is None or theirs is None:
        check.fail(f"{title}: the last loss is not finite")
        return "?", "NOT FINITE"
    difference = abs(mine - theirs) / abs(theirs)
    if difference > tolerance:
        check.fail(f"{title}: the last loss is {mine}, the CPU's {theirs}: further apart than {tolerance:.1e} of it")
        return f"{difference:.1e}", "TOO FAR"
    return f"{difference:.1e}", "close"


def against(check, rows, what, checksum, expected, result):
    """A row of the second table: whether a run has the bits of the runs before."""
    if checksum is None:
        check.fail(f"{what}: the run failed", result.why())
        rows.append((what, "failed", f"{result.seconds:.1f} s"))
    elif expected is None:
        rows.append((what, f"{checksum}; nothing to compare it with", f"{result.seconds:.1f} s"))
    elif checksum != expected:
        check.fail(f"{what}: weights {checksum}, not those of the ranks before, {expected}")
        rows.append((what, "DIFFERS", f"{result.seconds:.1f} s"))
    else:
        rows.append((what, "the same bits", f"{result.seconds:.1f} s"))


def mpi_command(check, ranks):
    """mpirun for so many ranks, each an NCCL "host" of its own: NCCL_HOSTID by rank."""
    if not check.facts["mpirun"]:
        raise Skipped("MPI is missing: mpirun starts each rank with an environment of its own")
    script = 'export NCCL_HOSTID="rank$OMPI_COMM_WORLD_RANK"; exec "$@"'
    return [check.facts["mpirun"], "--oversubscribe", "-n", str(ranks), "sh", "-c", script, "rank"]


MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Sockets alone, few channels: two ranks of NCCL on one card must not wait for each other's kernels to leave it room.
TWO_ON_ONE = {**MPI, "ZEROTRAIN_ALLOW_SHARED_GPU": "1", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1",
              "NCCL_MAX_CTAS": "2", "NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple"}


def part(check, what, function, *arguments):
    """A part of a step that may be impossible here."""
    try:
        function(*arguments)
    except Skipped as reason:
        check.skip(what, str(reason))


def run(check):
    if not check.facts["zerotrain"]:
        raise Skipped("the program or its backend was not built")
    if not check.emulated and not check.facts["card"]:
        raise Skipped("no GPU was seen")
    paths = {name: configs.write(check, name, config) for name, config in configs.small_configs(check.emulated).items()}
    if check.emulated:
        expected = curves(check, {"gpt": paths["gpt"]}, ["fp32", "bf16"], "1,2", "0,3")
        expected.update(curves(check, {"mlp": paths["mlp"]}, ["fp32"], "1,2", "2"))
    else:
        expected = curves(check, paths, ["fp32", "bf16", "fp16"], "1,2,4", "0,1,2,3")
    rows = []
    precision = "bf16"
    wanted = expected.get(("gpt", precision))
    stage = ["--set", "zero_optimization.stage=3"]

    def checksum(summary):
        return summary["weights_checksum"] if summary else None

    def staged(communicator_of, command, env, more):
        summary, result = train(check, paths["gpt"], precision, [*CUDA, *stage, *more], communicator_of.replace(" ", "-"),
                                command=command, env=env)
        against(check, rows, communicator_of, checksum(summary), wanted, result)

    def two_processes():
        staged("2 local processes, staged", (), None, ["--ranks", "2"])

    def two_over_mpi():
        if not check.facts["mpirun"]:
            raise Skipped("MPI is missing")
        staged("2 ranks over MPI, staged", [check.facts["mpirun"], "--oversubscribe", "-n", "2"], MPI,
               ["--set", 'device.communicator="staged"'])

    def one_nccl():
        if not check.facts["nccl"] and not check.emulated:
            raise Skipped("NCCL was not found")
        staged("1 rank of NCCL", (), None, ["--set", 'device.communicator="nccl"'])

    def two_nccl():
        if not check.facts["nccl"] and not check.emulated:
            raise Skipped("NCCL was not found")
        env = {**TWO_ON_ONE, **({"ZEROTRAIN_EMULATION_DEVICES": "2"} if check.emulated else {})}
        what = "2 ranks of NCCL, " + ("emulated GPUs" if check.emulated else "one card (experimental)")
        summary, result = train(check, paths["gpt"], precision, [*CUDA, *stage, "--set", 'device.communicator="nccl"'],
                                "nccl-2", command=mpi_command(check, 2), env=env)
        if summary is None and not check.emulated:
            # NCCL does not promise this, so it is no failure of the program.
            check.skip(what, "it did not work; NCCL makes no promise that it does: " + result.why().replace("\n", "; "))
            rows.append((what, "did not work (see above)", f"{result.seconds:.1f} s"))
            return
        against(check, rows, what, checksum(summary), wanted, result)

    part(check, "2 ranks as local processes", two_processes)
    part(check, "2 ranks over MPI", two_over_mpi)
    part(check, "1 rank of NCCL", one_nccl)
    part(check, "2 ranks of NCCL", two_nccl)
    check.say(f"The GPT in {precision} at stage 3, with the weights of the runs above after {configs.STEPS} steps:")
    check.say()
    check.table(("ranks", "weights", "time"), rows)
