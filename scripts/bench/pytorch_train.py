#!/usr/bin/env python3
"""One run of a peer on the CPU: trains on random data and prints a line of JSON (rank 0). versus_pytorch.py starts it.

    python scripts/bench/pytorch_train.py --model char --dtype bf16 --way compile --batch 16 --threads 2 --steps 10

Several ranks find each other by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them. Each is bound to its
share of the cores. GPTs: AdamW, fused where there is such, gradients clipped to 1.0, no dropout; bf16 and fp16 are autocast
over fp32 weights, fp16 with its loss scaler, but FSDP2's and DeepSpeed's own mixed precision there. The MLP: SGD; its fp16
is autocast, or with --masters weights copied to fp16 in each step and gradients divided by a scale of 1024.
"""

import argparse
import json
import os
import resource
import sys
import time

UNTIMED_STEPS = 3


def parse():
    parser = argparse.ArgumentParser(description="One run of PyTorch or DeepSpeed on the CPU.")
    parser.add_argument("--model", choices=["char", "124m", "tiny", "mlp"], default="char")
    parser.add_argument("--dtype", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--way", choices=["eager", "compile", "ddp", "fsdp2", "deepspeed"], default="eager")
    parser.add_argument("--stage", type=int, choices=range(4), default=0, help="of DeepSpeed's ZeRO")
    parser.add_argument("--batch", type=int, default=16, help="sequences or rows of a rank in a step")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--untimed", type=int, default=UNTIMED_STEPS, help="of the steps, the first so many")
    parser.add_argument("--checkpointing", action="store_true", help="recompute each block's activations")
    parser.add_argument("--masters", action="store_true", help="fp16 copies of fp32 weights in place of autocast (MLP)")
    arguments = parser.parse_args()
    if arguments.steps <= arguments.untimed:
        parser.error(f"--steps must be above --untimed, which is {arguments.untimed}")
    return arguments


def bind(rank, ranks):
    """This rank's share of the cores. Before torch is loaded, whose threads inherit it."""
    if ranks > 1 and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) >= ranks:
            os.sched_setaffinity(0, cores[rank * len(cores) // ranks:(rank + 1) * len(cores) // ranks])


def resident():
    """Most bytes that this process ever held, and those of files (programs and libraries, which ranks share)."""
    of_files = 0
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("RssFile:"):
                of_files = int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, of_files


def main():
    arguments = parse()
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    bind(rank, ranks)
    import torch
    from pytorch_ways import make_training

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1234 + rank)
    if ranks > 1 and arguments.way != "deepspeed":
        torch.distributed.init_process_group("gloo")
    step, facts = make_training(arguments, ranks)

    at_first = resident()[0]
    seconds, loss = [], None
    begun = time.time()
    first = None
    timed_from = time.perf_counter()
    for index in range(arguments.steps):
        if index == arguments.untimed:
            timed_from = time.perf_counter()
        start = time.perf_counter()
        loss = step()
        seconds.append(time.perf_counter() - start)
        first = first or time.time()
    total = time.perf_counter() - timed_from

    memory = resident()
    everyone = [memory]
    if ranks > 1:
        everyone = [None] * ranks
        torch.distributed.all_gather_object(everyone, memory)
    if rank == 0:
        print(json.dumps({
            "step_seconds": seconds if len(seconds) <= 200 else [],
            "steps_per_second": (arguments.steps - arguments.untimed) / total,
            "loss": loss,
            # Pages of files are there once, whoever maps them.
            "peak_resident": sum(peak for peak, _ in everyone) - sum(files for _, files in everyone[1:]),
            "resident": [peak for peak, _ in everyone],
            "resident_before_first_step": at_first,  # programs, libraries and the model
            "first_step_at": begun,
            "first_result_at": first,
            "threads": torch.get_num_threads(),
            "versions": {"torch": torch.__version__},
            **facts,
        }))
        sys.stdout.flush()
    if ranks > 1:
        torch.distributed.barrier()
        os._exit(0)  # DeepSpeed's threads abort the process when the interpreter takes itself down


if __name__ == "__main__":
    main()
