#!/usr/bin/env python3
"""PyTorch's side of the speed comparison on a GPU: GPT-2 with torch.compile, flash attention and fused AdamW.

    python3 scripts/bench/gpu_pytorch.py --model 124M --mode autocast --batch 32

prints one line of JSON. Modes: "autocast" computes in bf16 over fp32 weights, PyTorch's own recipe; "pure" has bf16
weights and gradients and fp32 masters, as zerotrain has. With --serve (scripts/gpu-check.sh) it reads commands, a line of
JSON each, and answers each with a line:

    {"compile": MODEL, "mode": MODE, "batch": N}   makes, compiles and runs it, and drops it: the next time is quicker
    {"prepare": MODEL, "mode": MODE, "batch": N}   makes, compiles and runs it; half the batch if memory does not suffice
    {"measure": MODEL, "mode": MODE, "steps": N}   {"tokens_per_second": ..., "loss": ..., "batch": ...}
    {"drop": MODEL, "mode": MODE}                  gives its memory back

An "id" of a command comes back with its answer. The models are those of pytorch_models.py. The larger one is
compiled block by block: the blocks share the compiled code, and compiling it as a whole takes minutes.
"""

import argparse
import gc
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_models import Gpt

MODELS = {
    "124M": dict(layers=12, heads=12, width=768, length=1024, vocabulary=50304),
    "1.5B": dict(layers=48, heads=25, width=1600, length=1024, vocabulary=50304),
    "tiny": dict(layers=2, heads=2, width=64, length=32, vocabulary=128),
}
BY_BLOCKS = {"1.5B", "tiny"}
UNTIMED_STEPS = 4


def head_and_loss(x, weight, targets):
    return F.cross_entropy(F.linear(x, weight).flatten(0, 1), targets.flatten())


class GptByBlocks(Gpt):
    """The same model; each block, and the head with the loss, compiled by itself."""

    def compile_parts(self):
        for block in self.blocks:
            block.compile()
        self.head = torch.compile(head_and_loss)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x), self.tokens.weight, targets)


class Training:
    """A model, its optimizer and a batch on the device."""

    def __init__(self, name, mode, batch, device):
        self.shape, self.mode, self.batch, self.device = MODELS[name], mode, batch, device
        torch.manual_seed(1234)
        with torch.device(device):
            self.model = (GptByBlocks if name in BY_BLOCKS else Gpt)(**self.shape)
        if mode == "pure":
            self.model.to(torch.bfloat16)
        self.parameters = list(self.model.parameters())
        self.masters = self.parameters
        if mode == "pure":
            self.masters = [parameter.detach().float() for parameter in self.parameters]
        self.optimizer = torch.optim.AdamW(self.masters, lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        if name in BY_BLOCKS:
            self.model.compile_parts()
            self.compiled = self.model
        else:
            self.compiled = torch.compile(self.model)
        tokens = torch.randint(self.shape["vocabulary"], (batch, self.shape["length"] + 1), device=device)
        self.inputs, self.targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def step(self):
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.mode == "autocast"):
            loss = self.compiled(self.inputs, self.targets)
        loss.backward()
        if self.mode == "pure":
            gradients = [parameter.grad for parameter in self.parameters]
            for master in self.masters:
                if master.grad is None:
                    master.grad = torch.empty_like(master)
            torch._foreach_copy_([master.grad for master in self.masters], gradients)
        nn.utils.clip_grad_norm_(self.masters, 1.0)
        self.optimizer.step()
        if self.mode == "pure":
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self.masters)
        for parameter in self.parameters:
            parameter.grad = None
        return loss.detach()

    def measure(self, steps):
        for _ in range(UNTIMED_STEPS):
            loss = self.step()
        self.wait()
        start = time.perf_counter()
        for _ in range(steps):
            loss = self.step()
        self.wait()
        seconds = time.perf_counter() - start
        answer = {"tokens_per_second": steps * self.batch * self.shape["length"] / seconds, "loss": loss.item(),
                  "batch": self.batch, "steps": steps, "torch": torch.__version__}
        self.park()
        return answer

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def park(self):
        """Keeps the weights and states only, so that another program finds memory."""
        for tensor in {id(t): t for t in self.parameters + self.masters}.values():
            tensor.grad = None
        gc.collect()
        if self.device == "cuda":
            torch.cuda.empty_cache()


def prepare(name, mode, batch, device):
    """A Training that has compiled and run; with half the batch, and so on, where memory does not suffice."""
    while True:
        try:
            training = Training(name, mode, batch, device)
            for _ in range(2):
                training.step()
            training.wait()
            training.park()
            return training
        except torch.OutOfMemoryError:
            training = None
            gc.collect()
            torch.cuda.empty_cache()
            if batch == 1:
                raise
            batch //= 2


def drop(training):
    training.park()
    del training
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def serve(device):
    held = {}
    for line in sys.stdin:
        command = json.loads(line)
        try:
            mode = command["mode"]
            if "compile" in command:
                drop(prepare(command["compile"], mode, command["batch"], device))
                answer = {}
            elif "prepare" in command:
                key = command["prepare"], mode
                held[key] = prepare(*key, command["batch"], device)
                answer = {"batch": held[key].batch}
            elif "measure" in command:
                answer = held[command["measure"], mode].measure(command["steps"])
            else:
                drop(held.pop((command["drop"], mode)))
                answer = {}
        except Exception as error:  # the check goes on without this number
            text = str(error).strip().splitlines()
            answer = {"error": f"{type(error).__name__}: {text[0] if text else ''}"[:400]}
        print(json.dumps({**answer, "id": command.get("id")}), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Speed of training GPT-2 with PyTorch on a GPU.")
    parser.add_argument("--model", choices=MODELS, default="124M")
    parser.add_argument("--mode", choices=["autocast", "pure"], default="autocast")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=20, help=f"timed ones, after {UNTIMED_STEPS}")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--serve", action="store_true", help="commands from stdin (see the head of this file)")
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    if arguments.serve:
        serve(arguments.device)
    else:
        training = prepare(arguments.model, arguments.mode, arguments.batch, arguments.device)
        print(json.dumps(training.measure(arguments.steps)))


if __name__ == "__main__":
    main()
