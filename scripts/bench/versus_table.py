"""The table of versus_pytorch.py, from the runs of a record alone."""

from bench_support import median, megabytes, number, table

BEST = "best of eager and compiled"
BEST_OF = ("PyTorch eager", "PyTorch eager, 1 thread", "PyTorch compiled", "PyTorch autocast", "PyTorch autocast, 1 thread",
           "PyTorch autocast compiled")


class Results:
    """The runs of one program in one contest, in medians."""

    def __init__(self, runs):
        ran = [run for run in runs if "problem" not in run]
        self.problem = None if ran else runs[-1]["problem"]
        self.against = runs[-1]["against"]
        self.unit = runs[-1]["unit"]
        self.rates = [run["rate"] for run in ran]
        self.rate = median(self.rates)
        self.peak = median(run["peak_resident"] for run in ran)
        self.first_step = median(run.get("seconds_to_first_step") for run in ran)
        self.first_result = median(run.get("seconds_to_first_result") for run in ran)


def contests(runs):
    """{(model, dtype, ranks): {program: Results}}, in the order of the runs."""
    grouped = {}
    for run in runs:
        grouped.setdefault((run["model"], run["dtype"], run["ranks"]), {}).setdefault(run["program"], []).append(run)
    return {key: {name: Results(group) for name, group in programs.items()} for key, programs in grouped.items()}


def ratio(a, b):
    return a / b if a is not None and b else None


def comparisons(programs):
    """(name, peer, zerotrain's side) of each peer; the best single process after the last of those it is chosen from."""
    rows = [(name, peer, programs.get(peer.against)) for name, peer in programs.items() if peer.against]
    singles = [(peer.rate, name) for name, peer, _ in rows if name in BEST_OF and peer.rate]
    if len(singles) > 1:
        best = programs[max(singles)[1]]
        position = max(i for i, (name, _, _) in enumerate(rows) if name in BEST_OF) + 1
        rows.insert(position, (BEST, best, programs.get(best.against)))
    return rows


def rows_of(runs, goals):
    """Cells: model, precision, ranks, which zerotrain, which peer, ratio, its spread, both rates, memory ratio, both memories, both starts, goal."""
    rows, notes = [], []
    for (model, dtype, ranks), programs in contests(runs).items():
        for name, result in programs.items():
            if result.problem:
                notes.append(f"{model} {dtype}, {ranks} rank{'s' if ranks > 1 else ''}, {name}: {result.problem}")
        for name, peer, ours in comparisons(programs):
            if ours is None or ours.problem or peer.problem:
                continue
            pairs = [a / b for a, b in zip(ours.rates, peer.rates)]  # of the same round
            spread = f"{min(pairs):.2f}-{max(pairs):.2f}" if len(pairs) > 1 else ""
            goal = (goals or {}).get(f"{model} {dtype}, {ranks}: {name}", "")
            rows.append({
                "model": model, "precision": dtype, "ranks": str(ranks), "ours": peer.against, "peer": name,
                "zerotrain / peer": number(ratio(ours.rate, peer.rate)), "spread": spread,
                "zerotrain": f"{ours.rate:.0f} {ours.unit}", "the peer": f"{peer.rate:.0f} {peer.unit}",
                "memory": number(ratio(ours.peak, peer.peak)), "MB": f"{megabytes(ours.peak)} / {megabytes(peer.peak)}",
                "start, s": f"{number(ours.first_step)} / {number(peer.first_step)}",
                "first result, s": f"{number(ours.first_result)} / {number(peer.first_result)}", "goal": goal})
    return rows, notes


def render(runs, goals=None, markdown=False):
    """`goals`: {"MODEL DTYPE, RANKS: PEER": text} or None for no such column."""
    rows, notes = rows_of(runs, goals)
    left_out = set() if goals is not None else {"goal"}
    if markdown:  # rates belong to a machine at a moment
        left_out |= {"zerotrain", "the peer", "first result, s"}
    headers = [name for name in (rows[0] if rows else {}) if name not in left_out]
    text = table(headers, [[row[name] for name in headers] for row in rows], markdown)
    if notes:
        text += "\n\n" + "\n".join(("- " if markdown else "") + note for note in dict.fromkeys(notes))
    return text
