#!/usr/bin/env python3
"""How much faster a token is written with cached keys and values than by a pass over the whole text for each, as
`zerotrain generate` and `zerotrain generate --no-cache` do, for the last tokens of a full window.

    scripts/bench/generate.py                      configs/gpt.json's model with 256 positions, fp32, one thread
    scripts/bench/generate.py --precision bf16 --threads 2 --positions 512

Ends with 1 if the ratio is below --at-least, or if both ways write other tokens.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build")))
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16"), default="fp32")
    parser.add_argument("--positions", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--at-least", type=float, default=20.0)
    options = parser.parse_args()
    program = options.build / "zerotrain"
    with tempfile.TemporaryDirectory() as folder:
        sets = ['data={"type": "synthetic", "task": "tokens", "samples": 100}', "model.vocab_size=80",
                f"model.n_positions={options.positions}", "training.sample_prompt=", "training.max_steps=2",
                "training.eval_interval=0", "training.checkpoint_interval=2", f"device.threads={options.threads}"]
        if options.precision != "fp32":
            sets.append(f"{options.precision}.enabled=true")
        train = [program, "--config", ROOT / "configs/gpt.json", "--quiet", "--output", f"{folder}/run"]
        run(train + [word for entry in sets for word in ("--set", entry)])
        prompt = options.positions * 3 // 4
        write = [program, "generate", "--checkpoint", f"{folder}/run", "--temperature", "0", "--json",
                 "--ids", ",".join(str(7 * i % 80) for i in range(prompt)),
                 "--max-tokens", str(options.positions - prompt), "--set", f"device.threads={options.threads}"]
        rates = {}
        tokens = []
        for way, more in (("cached", []), ("whole passes", ["--no-cache"])):
            found = [json.loads(run(write + more)) for _ in range(options.repeats)]
            rates[way] = statistics.median(one["tokens_per_second"] for one in found)
            tokens.append(found[0]["tokens"])
    ratio = rates["cached"] / rates["whole passes"]
    print(f"{options.precision}, {options.threads} thread(s), tokens {prompt + 1} to {options.positions} of "
          f"{options.positions}: {rates['cached']:.1f} tokens/s cached, {rates['whole passes']:.1f} by whole passes: "
          f"{ratio:.1f} times")
    same = tokens[0] == tokens[1]
    if not same:
        print("the two ways wrote other tokens")
    return 0 if same and ratio >= options.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
