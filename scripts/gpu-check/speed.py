"""Step 6: tokens per second and the share of the card's peak, beside PyTorch in turn; times of single operations."""

import json
import queue
import statistics
import subprocess
import threading

import cards
import configs
import training
from runner import Skipped, stop

# What one H200 shall reach, bf16 (docs/gpu.md): tokens per second, share of the peak.
TARGETS = {"124M": (450e3, None), "1.5B": (47e3, 0.45)}
WARM_UP = 4  # steps that are not timed
ROUNDS = 2  # of each program, in turn
RESERVE = 0.92  # part of the card's memory that a run may plan for


class Torch:
    """scripts/bench/gpu_pytorch.py, which keeps compiled models between measurements: lines of JSON both ways."""

    def __init__(self, check):
        self.check = check
        self.log = open(check.work / "pytorch.log", "w")
        self.process = subprocess.Popen(
            [check.options.python, check.source / "scripts/bench/gpu_pytorch.py", "--serve"], text=True, cwd=check.work,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=check.plain_environment,
            start_new_session=True)
        check.background.append(self.process)
        self.answers = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()
        self.waiting = None

    def listen(self):
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put(None)

    def ask(self, **command):
        """Sends a command; answer() waits for what comes back."""
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # answer() will say so

    def answer(self, limit):
        try:
            line = self.answers.get(timeout=max(0.1, limit))
        except queue.Empty:
            raise Skipped(f"PyTorch had no answer after {limit:.0f} s") from None
        if line is None:
            raise Skipped("PyTorch's program ended: " + (self.check.work / "pytorch.log").read_text()[-600:])
        answer = json.loads(line)
        if "error" in answer:
            raise Skipped("PyTorch: " + answer["error"])
        return answer

    def close(self):
        stop(self.process)
        if self.process in self.check.background:
            self.check.background.remove(self.process)


def start_torch(check):
    """While the program is built, PyTorch compiles its first model."""
    if check.emulated or check.options.without_pytorch or not check.facts["card"]:
        return
    if not check.facts["torch"]:
        check.skip("the comparison with PyTorch", f"{check.options.python}: {check.facts['torch_problem']}")
        return
    check.facts["torch_process"] = torch = Torch(check)
    torch.ask(prepare="124M", mode="autocast", batch=micro_batch_of(check, "124M"))
    torch.waiting = ("124M", "autocast")


# -- our own runs


def micro_batch_of(check, name):
    """The largest micro-batch with which either program fits beside the other's weights and states."""
    shape = configs.SHAPES[name]
    # Each program: 16 bytes a parameter. One at a time: 40 C bytes a token and layer (34 are planned in bf16), and the
    # logits, which PyTorch has in fp32 for a while.
    parameters = 12 * shape["layers"] * shape["width"] ** 2 + configs.VOCABULARY * shape["width"]
    token = 40 * shape["width"] * shape["layers"] + 8 * configs.VOCABULARY
    for micro in shape["micro_batches"]:
        if 32 * parameters + micro * configs.LENGTH * token <= check.facts["memory"] * RESERVE:
            return micro
    raise Skipped(f"GPT-2 {name} does not fit the card's memory")


def measure(check, name, precision, epilogue, steps):
    """(tokens per second, summary) of one run, from the times of its steps after the first ones."""
    shape = configs.SHAPES[name]
    micro = micro_batch_of(check, name)
    config = configs.write(check, f"speed-{name}", configs.speed_config(shape, micro, steps))
    more = [*training.CUDA, "--set", f"device.gelu_epilogue={'true' if epilogue else 'false'}"]
    summary, result = training.train(check, config, precision, more, "speed", limit=90)
    if summary is None:
        check.fail(f"GPT-2 {name} in {precision} did not train", result.why())
        return None
    lines = [json.loads(line) for line in (check.work / "run-speed/metrics.jsonl").read_text().splitlines()]
    seconds = [line["step_seconds"] for line in lines if line["kind"] == "train"][WARM_UP:]
    if summary["steps"]["skipped"]:
        check.notes.append(f"GPT-2 {name} in {precision}: {summary['steps']['skipped']} steps were skipped; they are "
                           "shorter than others")
    # The mean: PyTorch's steps are timed together, too.
    return micro * configs.LENGTH * len(seconds) / sum(seconds), summary


def share(check, name, rate):
    """Of the card's peak, as text."""
    known = cards.peak(check.facts["card"])
    flops = rate * configs.flops_per_token(configs.SHAPES[name])
    return f"{flops * 1e-12:.0f} TFLOP/s" + (f", {100 * flops * 1e-12 / known[0]:.1f} %" if known else ", peak unknown")


def in_turn(check, name, rows, torch, mode):
    """A B A B: other load, and the card's temperature, meet both alike. Returns our median."""
    shape = configs.SHAPES[name]
    ours, theirs, answer, held = [], [], {}, 0
    if torch:
        try:
            if torch.waiting != (name, mode):
                torch.ask(prepare=name, mode=mode, batch=micro_batch_of(check, name))
            torch.waiting = None
            torch.answer(min(120, check.left() - 20))
        except Skipped as reason:
            check.skip(f"PyTorch, GPT-2 {name}, {mode}", str(reason))
            torch = None
    for _ in range(ROUNDS if torch else 1):
        mine = measure(check, name, "bf16", False, shape["steps"])
        if mine is None:
            break
        ours.append(mine[0])
        held = sum(value for key, value in mine[1]["memory"]["planned"].items() if key != "padding")
        if torch:
            try:
                torch.ask(measure=name, mode=mode, steps=shape["steps"] - WARM_UP)
                answer = torch.answer(min(60, check.left()))
                theirs.append(answer["tokens_per_second"])
            except Skipped as reason:
                check.skip(f"PyTorch, GPT-2 {name}, {mode}", str(reason))
                torch = None
    if not ours:
        return None, None
    if torch:
        torch.ask(drop=name, mode=mode)
        torch.answer(20)
    median = statistics.median(ours)
    rows.append((name, "zerotrain", "bf16", f"{median / 1e3:.1f}", share(check, name, median),
                 " ".join(f"{rate / 1e3:.1f}" for rate in ours), f"{held / 1e9:.1f} GB"))
    if theirs:
        other = statistics.median(theirs)
        kind = {"autocast": "bf16 autocast", "pure": "bf16 weights, fp32 masters"}[mode]
        if answer["batch"] != micro_batch_of(check, name):
            kind += f", micro-batch {answer['batch']} (more does not fit)"
        rows.append((name, "PyTorch", kind,
                     f"{other / 1e3:.1f}", share(check, name, other), " ".join(f"{rate / 1e3:.1f}" for rate in theirs), ""))
        return median, median / other
    return median, None


def alone(check, name, rows, reference):
    """fp16, and the GELU within products: one run each."""
    steps = max(8, configs.SHAPES[name]["steps"] // 2)
    for precision, epilogue in (("fp16", False), ("bf16", True), ("fp16", True)):
        if check.left() < 15:
            check.skip(f"GPT-2 {name}, {precision}" + (", gelu_epilogue" if epilogue else ""), "no time was left")
            continue
        mine = measure(check, name, precision, epilogue, steps)
        if mine:
            change = f"; {mine[0] / reference:.3f} x bf16's" if reference else ""
            rows.append((name, "zerotrain", precision + (", gelu_epilogue" if epilogue else ""), f"{mine[0] / 1e3:.1f}",
                         share(check, name, mine[0]) + change, "", ""))


def model(check, name):
    """All of one shape."""
    if not check.facts["zerotrain"] or not check.facts["card"]:
        raise Skipped("no GPU was seen" if check.facts["zerotrain"] else "the program was not built")
    rows, ratios = [], []
    torch = check.facts["torch_process"]
    best = None
    for mode in ("autocast", "pure"):
        if mode == "pure" and (not torch or check.left() < 60):
            if torch:
                check.skip(f"PyTorch, GPT-2 {name}, pure bf16", "no time was left")
            continue
        rate, ratio = in_turn(check, name, rows, torch, mode)
        best = max(filter(None, (best, rate)), default=None)
        if ratio:
            ratios.append((mode, ratio))
    alone(check, name, rows, best)
    check.say(f"GPT-2 {name}: T = {configs.LENGTH}, vocabulary {configs.VOCABULARY}, micro-batch "
              f"{micro_batch_of(check, name)}, no accumulation, no dropout, AdamW, clipping, tied head, synthetic "
              f"tokens; steps after the first {WARM_UP}. FLOPs: 6 per weight of a product and token, attention causal.")
    check.say()
    check.table(("model", "program", "precision", "thousand tokens/s", "products", "each run", "planned memory"), rows)
    for mode, ratio in ratios:
        check.say(f"- zerotrain / PyTorch ({mode}): {ratio:.3f}" + ("" if ratio >= 1 else " — slower than PyTorch"))
    judge(check, name, best, [ratio for _, ratio in ratios])
    check.say()


def judge(check, name, best, ratios):
    """Beside the targets, which are for one H200."""
    target, part = TARGETS[name]
    known = cards.peak(check.facts["card"])
    if not best:
        return
    reached = [f"{best / 1e3:.1f} of {target / 1e3:.0f} thousand tokens/s"]
    good = best >= target
    if part and known:
        mine = best * configs.flops_per_token(configs.SHAPES[name]) * 1e-12 / known[0]
        reached.append(f"{100 * mine:.1f} % of the peak, wanted {100 * part:.0f} %")
        good = good and mine >= part
    if ratios:
        reached.append(f"at least {min(ratios):.3f} of PyTorch's speed, wanted 1")
        good = good and min(ratios) >= 1
    check.say(f"- targets (one H200): {'reached' if good else 'NOT REACHED'}: " + "; ".join(reached))
    check.facts["targets"] = (check.facts["targets"] or []) + [(name, "reached" if good else "NOT reached", "; ".join(reached))]


def small(check):
    model(check, "124M")


def large(check):
    model(check, "1.5B")


# -- single operations


def operations(check):
    """Each operation of a step, by itself."""
    program = check.facts["operations_bench"]
    if not check.facts["zerotrain"] or not program:
        raise Skipped("gpu_operations was not built")
    if not check.emulated and not check.facts["card"]:
        raise Skipped("no GPU was seen")
    shapes = ["tiny"] if check.emulated else ["124M", "1.5B"]
    for shape in shapes:
        result = check.run([program, "--shape", shape, "--json", "--milliseconds", "0.001" if check.emulated else "10"], 40)
        if not result.ok:
            check.fail(f"gpu_operations {shape} failed", result.why())
            continue
        table = json.loads(result.output)
        if check.emulated:
            check.say(f"All {len(table)} operations ran at tiny shapes; emulated GPUs have no speed to speak of.")
            check.say()
            continue
        rows = []
        for row in table:
            rate = f"{row['tflops']:.1f} TFLOP/s" if "tflops" in row else f"{row['gigabytes_per_second']:.0f} GB/s"
            slow = row["part_of_card"] < 0.5
            rows.append((row["operation"], row["shape"], f"{row['microseconds']:.1f}", rate,
                         f"{100 * row['part_of_card']:.0f} %" + (" SLOW" if slow else "")))
        known = cards.peak(check.facts["card"])
        check.say(f"Shapes of GPT-2 {shape}, bf16. The first two lines are what the card did for a large product and a large "
                  "copy; the last column is the part of that" +
                  (f" (data sheet: {known[0]:.1f} TFLOP/s, {known[1]} GB/s; {known[2]})." if known else "."))
        check.say()
        check.table(("operation", "shape", "microseconds", "rate", "of the card"), rows)
