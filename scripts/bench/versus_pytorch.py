#!/usr/bin/env python3
"""Trains the same models with zerotrain and with its peers in turn, and prints one table of ratios.

Peers: PyTorch eager and compiled, DistributedDataParallel and FSDP2 over gloo, DeepSpeed's stages 0 to 3. Models: those of
configs/bench (GPTs; AdamW, clipping 1.0, no dropout, GELU's tanh form on both sides) and an MLP of layers 512, 512, 1
without biases at batch 4 (SGD; steps per second). One rank has all cores; several divide them. A round runs each program
once, one after the other, so that other load meets all alike; rates are medians over steps and then over rounds.

Memory: the most that the processes held, pages that ranks share counted once. Start: from the start of the process to the
first step. A peer that cannot run here is named below the table with its own reason.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import bench_support as support
import bench_zerotrain as zerotrain
import versus_table
from bench_support import BenchError, say
from bench_venv import default_folder, interpreter
from bench_zerotrain import UNTIMED_STEPS

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["char", "124m", "tiny", "mlp"]
DTYPES = ["fp32", "bf16", "fp16"]
STEPS = {"char": 12, "124m": 8, "tiny": 8}
MLP_STEPS, MLP_UNTIMED, MLP_BATCH = 4000, 200, 4
CHECKPOINTING = "activation_checkpointing.every=1"


def peer(name, against, way, **more):
    return {"name": name, "against": against, "way": way, **more}


def programs_of(model, dtype, ranks):
    """zerotrain's variants, then the peers, each with the name of the variant it is held against."""
    if model == "mlp":
        return mlp_programs(dtype)
    if ranks == 1:
        ours = [{"name": "zerotrain"}, {"name": "zerotrain, checkpointing", "sets": [CHECKPOINTING]}]
        peers = [peer("PyTorch eager", "zerotrain", "eager"), peer("PyTorch compiled", "zerotrain", "compile"),
                 peer("PyTorch eager, checkpointing", "zerotrain, checkpointing", "eager", checkpointing=True)]
        if dtype == "fp16":  # an hour for what one figure says already
            peers = peers[:1]
        if dtype != "fp32":
            ours.append({"name": "zerotrain fp32", "dtype": "fp32", "against": "zerotrain"})
        return ours + peers
    ours = [{"name": f"zerotrain stage {stage}", "sets": [f"zero_optimization.stage={stage}"]} for stage in range(4)]
    ours[0]["against"] = "zerotrain stage 3"
    peers = [peer("DDP", "zerotrain stage 0", "ddp"), peer("FSDP2", "zerotrain stage 3", "fsdp2")]
    return ours + peers + [peer(f"DeepSpeed stage {stage}", f"zerotrain stage {stage}", "deepspeed", stage=stage)
                           for stage in range(4)]


def mlp_programs(dtype):
    ours = [{"name": "zerotrain"}]
    if dtype == "fp16":
        return ours + [peer("PyTorch autocast", "zerotrain", "eager"),
                       peer("PyTorch autocast, 1 thread", "zerotrain", "eager", threads=1),
                       peer("PyTorch, fp16 copies of fp32 weights", "zerotrain", "eager", masters=True)]
    return ours + [peer("PyTorch eager", "zerotrain", "eager"),
                   peer("PyTorch eager, 1 thread", "zerotrain", "eager", threads=1),
                   peer("PyTorch compiled", "zerotrain", "compile")]


def chosen(programs, words):
    """Programs with one of the words as their name or, if it is no name, in it; and what they are held against."""
    if not words:
        return programs
    names = {program["name"].lower() for program in programs}

    def fits(name):
        return any(word == name or (word not in names and word in name) for word in (word.lower() for word in words))

    against = {program.get("against") for program in programs if fits(program["name"].lower())}
    return [program for program in programs if fits(program["name"].lower()) or program["name"] in against]


class Versus:
    def __init__(self, options, binary, python, record):
        self.options, self.binary, self.python, self.record = options, binary, python, record
        self.threads = options.threads or support.cores()
        self.cache = tempfile.TemporaryDirectory(prefix="zerotrain-bench-")

    def steps(self, model, slow):
        """Steps of a run and how many of them are not timed."""
        if model == "mlp":
            return (600, 100) if self.options.quick else (MLP_STEPS, MLP_UNTIMED)
        if slow:
            return 2, 1
        return self.options.steps or (UNTIMED_STEPS + 2 if self.options.quick else STEPS[model]), UNTIMED_STEPS

    def contest(self, model, dtype, ranks):
        programs = chosen(programs_of(model, dtype, ranks), support.words_of(self.options.only))
        say(f"{model}, {dtype}, {ranks} rank(s)")
        for round_number in range(1, self.options.rounds + 1):
            for program in programs:
                # PyTorch's fp16 needs tens of seconds a step, whatever the round.
                slow = dtype == "fp16" and "way" in program and model not in ("mlp", "tiny")
                if slow and round_number > 1:
                    continue
                others = support.Others()
                if "way" in program:
                    result = self.run_peer(program, model, dtype, ranks, *self.steps(model, slow))
                else:
                    result = self.run_zerotrain(program, model, dtype, ranks, *self.steps(model, False))
                result["others"] = others.share()
                unit = "steps/s" if model == "mlp" else "tokens/s"
                zerotrain.describe(program["name"], result, result.get("rate"), unit)
                self.record.take({"model": model, "dtype": dtype, "ranks": ranks, "program": program["name"],
                                  "against": program.get("against"), "unit": unit, "round": round_number, **result})

    def rate(self, model, ranks, seconds, untimed):
        timed = seconds[untimed:] or seconds[-1:]
        tokens = zerotrain.micro_batch(model, ranks) * ranks * zerotrain.LENGTH[model]
        return tokens / support.median(timed)

    def run_zerotrain(self, program, model, dtype, ranks, steps, untimed):
        sets = zerotrain.PRECISIONS[program.get("dtype", dtype)] + program.get("sets", [])
        sets = [*sets, f"training.max_steps={steps}", f"device.threads={max(1, self.threads // ranks)}", "device.type=cpu"]
        if model == "mlp":
            config, more = support.ROOT / "configs/mlp.json", ["training.eval_interval=0", "optimizer.params.lr=1e-3",
                                                               "steps_per_print=1000000"]
        else:
            config, more = zerotrain.preset_options(model)
            more = [*more, f"train_batch_size={zerotrain.micro_batch(model, ranks) * ranks}"]
        result = zerotrain.run(self.binary, config, [*more, *sets], ranks, self.options.timeout)
        if "problem" not in result:
            result["rate"] = (steps / result["train_seconds"] if model == "mlp"
                              else self.rate(model, ranks, result["step_seconds"], untimed))
        return result

    def run_peer(self, program, model, dtype, ranks, steps, untimed):
        threads = program.get("threads") or max(1, self.threads // ranks)
        words = [self.python, HERE / "pytorch_train.py", "--model", model, "--dtype", dtype, "--way", program["way"],
                 "--batch", MLP_BATCH if model == "mlp" else zerotrain.micro_batch(model, ranks),
                 "--threads", threads, "--steps", steps, "--untimed", untimed]
        words += ["--stage", program["stage"]] if "stage" in program else []
        words += [f"--{name}" for name in ("checkpointing", "masters") if program.get(name)]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(port), "DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": "",
                       "PYTHONDONTWRITEBYTECODE": "1", "TORCHINDUCTOR_CACHE_DIR": self.cache.name,
                       "TORCH_EXTENSIONS_DIR": str(default_folder().parent / "torch-extensions")}
        result = run_processes([str(word) for word in words], environment, ranks, self.options.timeout)
        if "problem" not in result:
            result["rate"] = (result["steps_per_second"] if model == "mlp"
                              else self.rate(model, ranks, result["step_seconds"], untimed))
        return result


def run_processes(words, environment, ranks, timeout):
    """Starts the ranks; the result is what rank 0 printed, or a problem in a line."""
    with tempfile.TemporaryDirectory(prefix="zerotrain-bench-") as folder:
        outputs = [open(pathlib.Path(folder) / str(rank), "w+") for rank in range(ranks)]
        start = time.time()
        processes = [subprocess.Popen(words, env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                                      stdout=output, stderr=subprocess.STDOUT, cwd=folder)
                     for rank, output in enumerate(outputs)]
        late = False
        while any(process.poll() is None for process in processes):
            late = time.time() - start > timeout
            if late or any(process.poll() not in (None, 0) for process in processes):  # the others would wait for it
                if not late:
                    time.sleep(1)  # for their own messages
                for process in processes:
                    process.kill()
                break
            time.sleep(0.05)
        for process in processes:
            process.wait()
        texts = []
        for output in outputs:
            output.seek(0)
            texts.append(output.read())
            output.close()
    return read_peer(texts, start, f"not done after {timeout:.0f} s" if late else None)


def read_peer(texts, start, problem=None):
    """What the ranks printed, rank 0 first: its last line of JSON counts."""
    line = next((line for line in reversed(texts[0].splitlines()) if line.startswith('{"step_seconds"')), None)
    if problem or line is None:
        errors = [line.split(": ", 1)[-1] if line.startswith("[rank") else line for line in "\n".join(texts).splitlines()
                  if "Error: " in line]
        return {"problem": problem or (errors[0].strip() if errors else zerotrain.last_line(texts[0]))[:200]}
    result = json.loads(line)
    result["seconds_to_first_step"] = result.pop("first_step_at") - start
    result["seconds_to_first_result"] = result.pop("first_result_at") - start
    return result


def parse():
    parser = support.parser_for("versus_pytorch", __doc__)
    parser.add_argument("--presets", default="char,124m,mlp", help="models: char, 124m, tiny, mlp (all but tiny)")
    parser.add_argument("--dtypes", default="fp32,bf16,fp16", help="(all; the MLP in fp32 and fp16 only)")
    parser.add_argument("--ranks", default="1,2", help="numbers of processes (1,2; the MLP with one only)")
    parser.add_argument("--only", default="", metavar="WORDS",
                        help="programs so named, or with a word in their names, and what they are held against: "
                             "'PyTorch eager', compiled, DDP, FSDP2, 'DeepSpeed stage 3'")
    parser.add_argument("--rounds", type=support.count, help="(3)")
    parser.add_argument("--steps", type=support.count, help=f"of a GPT's run, {UNTIMED_STEPS} of them not timed (char 12, 124m 8)")
    parser.add_argument("--threads", type=support.count, help="of all ranks together (all cores)")
    parser.add_argument("--timeout", type=support.duration, default=1200.0, metavar="SECONDS", help="for one run (1200)")
    parser.add_argument("--python", type=pathlib.Path, help="an interpreter that has torch, and deepspeed if that shall run")
    parser.add_argument("--venv", type=pathlib.Path, metavar="DIR",
                        help=f"the virtual environment, made if it is not there, outside the repository ({default_folder()})")
    parser.add_argument("--pip-option", action="append", default=[], metavar="WORD",
                        help="a further word for pip install, as --pip-option=--index-url=URL; may be repeated")
    options = parser.parse_args()
    if options.steps and options.steps <= UNTIMED_STEPS:
        raise BenchError(f"--steps {options.steps}: the first {UNTIMED_STEPS} are not timed, so more are wanted")
    if options.quick and options.presets == parser.get_default("presets"):
        options.presets = "tiny,mlp"
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def main():
    options = parse()
    if options.recorded:
        content = support.read_record(options.recorded, "versus_pytorch")
    else:
        models = support.choices("--presets", options.presets, MODELS)
        dtypes = support.choices("--dtypes", options.dtypes, DTYPES)
        ranks = support.numbers("--ranks", options.ranks)
        binary = support.program(options, "zerotrain")
        contests = [(model, dtype, count) for model in models for dtype in dtypes for count in ranks
                    if model != "mlp" or (count == 1 and dtype != "bf16")]
        if not any(chosen(programs_of(*contest), support.words_of(options.only)) for contest in contests):
            raise BenchError(f"--only {options.only}: none of the programs of these models, precisions and ranks is so named")
        python, versions = interpreter(options.python, options.venv, options.pip_option)
        record = support.Record("versus_pytorch", options, versions)
        versus = Versus(options, binary, python, record)
        for contest in contests:
            versus.contest(*contest)
        content = record.content
    return support.deliver(options, content, versus_table.render)


if __name__ == "__main__":
    support.run_bench(main)
