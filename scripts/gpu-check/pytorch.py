"""PyTorch's side of step 6: a process that keeps compiled models, and measures when it is asked to."""

import json
import queue
import subprocess
import threading
import time

import configs
from runner import Skipped, stop

MODES = {"autocast": "bf16 autocast", "pure": "bf16 weights, fp32 masters"}  # of gpu_pytorch.py


class Torch:
    """scripts/bench/gpu_pytorch.py, which keeps compiled models between measurements: lines of JSON both ways."""

    def __init__(self, check):
        self.check = check
        self.log = check.work / "pytorch.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [check.options.python, check.source / "scripts/bench/gpu_pytorch.py", "--serve"], text=True, cwd=check.work,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=check.plain_environment,
                start_new_session=True)
        check.background.append(self.process)
        self.answers = queue.Queue()
        self.asked = 0
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put(None)

    def ask(self, **command):
        """Sends a command; answer() waits for what comes back to the last one."""
        self.asked += 1
        try:
            self.process.stdin.write(json.dumps({**command, "id": self.asked}) + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # answer() will say so

    def answer(self, limit):
        """What the last command led to; answers to earlier ones are passed over."""
        end = time.monotonic() + limit
        while True:
            try:
                line = self.answers.get(timeout=max(0.1, end - time.monotonic()))
            except queue.Empty:
                raise Skipped(f"PyTorch had no answer after {limit:.0f} s") from None
            if line is None:
                self.answers.put(None)
                raise Skipped("its program ended: " + " ".join(self.log.read_text().split())[-400:])
            answer = json.loads(line)
            if answer["id"] != self.asked:
                continue
            if "error" in answer:
                raise Skipped(answer["error"])
            return answer

    def close(self):
        stop(self.process)
        if self.process in self.check.background:
            self.check.background.remove(self.process)


def start_torch(check):
    """While the program is built, PyTorch compiles its models; nothing is timed then."""
    if check.emulated or check.options.without_pytorch or not check.facts["card"]:
        return
    if not check.facts["torch"]:
        check.skip("the comparison with PyTorch", f"{check.options.python}: {check.facts['torch_problem']}")
        return
    check.facts["torch_process"] = torch = Torch(check)
    for name in configs.SHAPES:
        for mode in MODES:
            torch.ask(compile=name, mode=mode, batch=configs.micro_batch_of(check, name))


def quiet_torch(check, limit):
    """Waits until PyTorch has compiled: what is timed must have the card for itself."""
    torch = check.facts["torch_process"]
    if not torch or check.facts["torch_is_quiet"]:
        return
    check.facts["torch_is_quiet"] = True
    try:
        torch.answer(limit)
    except Skipped as reason:
        # That one model does not fit is no reason to do without the others.
        if torch.process.poll() is not None or "no answer" in str(reason):
            check.skip("the comparison with PyTorch", str(reason))
            torch.close()
            check.facts["torch_process"] = None
