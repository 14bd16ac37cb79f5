"""The tables of stages.py, from the runs of a record alone."""

from bench_support import median, megabytes, number, table


def name_of(run):
    if run["kind"] == "growth":
        return f"{run['key']} {run['value']}"
    name = f"{run['ranks']} rank{'s' if run['ranks'] > 1 else ''}, stage {run['stage']}"
    return f"{name}, {run['order']} order" if run["kind"] == "order" else name


class Results:
    """The runs of one set-up, in medians."""

    def __init__(self, runs):
        ran = [run for run in runs if "problem" not in run]
        self.what = runs[-1]
        self.problem = None if ran else runs[-1]["problem"]
        self.rate = median(run["rate"] for run in ran)
        self.planned = median(max(run["planned"]) for run in ran)
        self.resident = median(max(run["resident"]) for run in ran)
        self.sent = median(run["bytes_sent_per_step"] for run in ran)
        self.utilization = median(run["utilization"] for run in ran)
        self.categories = ran[-1]["planned_by_category"] if ran else {}
        self.flops_per_token = (median(run["flops_per_second"] / run["rate"] for run in ran if run["flops_per_second"])
                                if ran else None)


def grouped(runs, kind):
    groups = {}
    for run in runs:
        if run["kind"] == kind:
            groups.setdefault((run["preset"], run["dtype"], name_of(run)), []).append(run)
    return [Results(group) for group in groups.values()]


def ratio(a, b):
    return number(a.rate / b.rate) if a and b and a.rate and b.rate else ""


def find(results, like, **values):
    """The result of the same model and format with these values, or None."""
    return next((r for r in results if all(r.what[key] == like.what[key] for key in ("preset", "dtype"))
                 and all(r.what[key] == value for key, value in values.items())), None)


def rows_of_stages(runs):
    results = grouped(runs, "stage")
    for r in results:
        if r.problem:
            continue
        ranks, stage = r.what["ranks"], r.what["stage"]
        yield {"model": r.what["preset"], "precision": r.what["dtype"], "ranks": str(ranks), "stage": str(stage),
               "tokens/s": number(r.rate, 0), "to stage 0": ratio(r, find(results, r, ranks=ranks, stage=0)),
               "to 2 ranks": ratio(r, find(results, r, ranks=2, stage=stage)), "planned MB": megabytes(r.planned),
               "resident MB": megabytes(r.resident), "sent MB a step": number(r.sent / 1e6, 1),
               "of product rate": number(r.utilization)}


def rows_of_orders(runs):
    results = grouped(runs, "order")
    for r in results:
        local = find(results, r, stage=r.what["stage"], order="local")
        if r.what["order"] == "global" and not r.problem and local and not local.problem:
            yield {"model": r.what["preset"], "precision": r.what["dtype"], "ranks": str(r.what["ranks"]),
                   "stage": str(r.what["stage"]), "global / local": ratio(r, local),
                   "sent MB a step": f"{number(r.sent / 1e6, 1)} / {number(local.sent / 1e6, 1)}",
                   "planned MB": f"{megabytes(r.planned)} / {megabytes(local.planned)}"}


def rows_of_growth(runs):
    first = {}
    for r in grouped(runs, "growth"):
        if r.problem:
            continue
        group = (r.what["preset"], r.what["dtype"], r.what["key"])
        base = first.setdefault(group, r)
        tokens = r.what["tokens"]
        states = sum(r.categories[name] for name in ("parameters", "gradients", "optimizer"))
        yield {"model": r.what["preset"], "precision": r.what["dtype"], "key": r.what["key"], "value": str(r.what["value"]),
               "parameters": str(r.what["parameters"]), "tokens/s": number(r.rate, 0),
               "time a token": ratio(base, r), "operations a token": number(r.flops_per_token / base.flops_per_token),
               "states MB": megabytes(states), "activations, KB a token": number(r.categories["activations"] / tokens / 1e3, 1),
               "resident MB": megabytes(r.resident), "of product rate": number(r.utilization)}


def goal_rows(runs, goals):
    """What is aimed at beside what came out, for each model and format."""
    stages, orders = grouped(runs, "stage"), grouped(runs, "order")
    for r in stages:
        if r.problem or r.what["stage"] != 0 or r.what["ranks"] != 2:
            continue
        other = {"2 ranks, stage 3 / stage 0": (find(stages, r, ranks=2, stage=3), r),
                 "4 ranks / 2 ranks, stage 0": (find(stages, r, ranks=4, stage=0), r),
                 "4 ranks / 2 ranks, stage 3": (find(stages, r, ranks=4, stage=3), find(stages, r, ranks=2, stage=3)),
                 "2 ranks, stage 1, global / local": (find(orders, r, stage=1, order="global"),
                                                      find(orders, r, stage=1, order="local"))}
        for name, goal in goals.items():
            if name in other:
                yield {"model": r.what["preset"], "precision": r.what["dtype"], "what": name,
                       "measured": ratio(*other[name]), "goal": goal}


def render(runs, goals=None, markdown=False):
    parts = [list(rows_of_stages(runs)), list(rows_of_orders(runs)), list(rows_of_growth(runs)),
             list(goal_rows(runs, goals)) if goals else []]
    texts = []
    for rows in parts:
        if rows:
            headers = [name for name in rows[0] if not (markdown and name == "tokens/s")]
            texts.append(table(headers, [[row[name] for name in headers] for row in rows], markdown))
    problems = dict.fromkeys(f"{'- ' if markdown else ''}{r.what['preset']} {r.what['dtype']}, {name_of(r.what)}: {r.problem}"
                             for kind in ("stage", "order", "growth") for r in grouped(runs, kind) if r.problem)
    return "\n\n".join([*texts, *(["\n".join(problems)] if problems else [])]) or "(no runs)"
