#!/usr/bin/env python3
"""Holds zerotrain's formats against the transformers library itself, live: random GPT-2 models of several kinds.

    python scripts/compare/formats.py [--zerotrain build/zerotrain]

In a virtual environment that has torch and transformers. For each model:

- zerotrain exports what transformers saved to llm.c's format (where it can) and back; transformers opens the result, and
  its logits are those of the model, to 1e-5;
- zerotrain trains from the saved model (model.pretrained) with AdamW, on one rank and on two at stage 3; PyTorch trains
  the same model on the same windows; the losses of every step agree to 2e-5;
- what zerotrain has trained on two ranks is exported; the library's loss on the windows is the loss that zerotrain finds
  when it goes on from the same checkpoint, to 1e-5.

Ends with 1 where something differs.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from tokenizers import Tokenizer
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

ROWS, STEPS, LR = 8, 20, 1e-3
MODELS = {
    "gpt2": dict(),
    "wide": dict(n_embd=96, n_head=6, n_layer=3, n_positions=48, n_inner=100, activation_function="gelu"),
    "untied": dict(tie_word_embeddings=False, activation_function="relu"),
    "silu": dict(activation_function="silu", layer_norm_epsilon=1e-6),
}


def make_model(seed, **settings):
    torch.manual_seed(seed)
    sizes = dict(n_layer=2, n_head=4, n_embd=32, n_positions=24, vocab_size=256)
    config = GPT2Config(**dict(sizes, **settings), resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=None,
                        eos_token_id=None)
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def run(program, *arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}\n{result.stderr}")


def largest_difference_of_logits(one, other):
    tokens = torch.arange(one.config.n_positions).repeat(2, 1) * 7 % one.config.vocab_size
    with torch.no_grad():
        return (one(tokens).logits - other(tokens).logits).abs().max().item()


def loss_of(model, windows):
    logits = model(windows[:, :-1]).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def train(model, windows):
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.1)
    losses = []
    for _ in range(STEPS):
        loss = loss_of(model, windows)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def losses_of_zerotrain(program, folder, model, text, ranks, stage):
    (folder / "text.txt").write_bytes(text)
    config = {
        "train_batch_size": ROWS, "train_micro_batch_size_per_gpu": ROWS // ranks,
        "optimizer": {"type": "AdamW", "params": {"lr": LR, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.1}},
        "zero_optimization": {"stage": stage},
        "model": {"type": "gpt", "pretrained": str(model)},
        "data": {"type": "text", "path": "text.txt", "tokenizer": "bytes", "validation_fraction": 0.0},
        "training": {"max_steps": STEPS, "checkpoint_interval": STEPS}, "device": {"type": "cpu", "threads": 1},
    }
    (folder / "config.json").write_text(json.dumps(config))
    out = folder / f"run-{ranks}-{stage}"
    options = ["--config", folder / "config.json", "--ranks", ranks, "--output", out, "--quiet"]
    run(program, *options)
    run(program, "export", "--checkpoint", out, "--format", "huggingface", "--output", out / "exported")
    run(program, *options, "--resume", "--set", f"training.max_steps={STEPS + 1}")
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "train"], out / "exported"


def check(program, name, model, folder):
    saved = folder / "saved"
    model.save_pretrained(saved)
    exported = folder / "exported"
    source, way = saved, "huggingface"
    if name == "gpt2":
        run(program, "export", "--checkpoint", saved, "--format", "llm.c", "--output", folder / "llmc")
        source, way = folder / "llmc" / "model.bin", "llm.c and huggingface"
    run(program, "export", "--checkpoint", source, "--format", "huggingface", "--output", exported)
    logits = largest_difference_of_logits(model, GPT2LMHeadModel.from_pretrained(exported))

    length = model.config.n_positions
    text = bytes((i * i + i // 3) % 128 for i in range(ROWS * length + 1))
    windows = torch.tensor(list(text)).unfold(0, length + 1, length)[:ROWS]
    theirs = train(GPT2LMHeadModel.from_pretrained(saved), windows)
    worst = after = 0.0
    for ranks, stage in [(1, 0), (2, 3)]:
        ours, trained = losses_of_zerotrain(program, folder, saved, text, ranks, stage)
        assert len(ours) == STEPS + 1, ours
        worst = max([worst] + [abs(a - b) for a, b in zip(ours, theirs)])
        with torch.no_grad():
            after = max(after, abs(loss_of(GPT2LMHeadModel.from_pretrained(trained), windows).item() - ours[-1]))
    good = logits <= 1e-5 and worst <= 2e-5 and after <= 1e-5
    print(f"{name:8} logits through {way}: {logits:.1e}; losses of {STEPS} steps, {theirs[0]:.4f} to {theirs[-1]:.4f}: "
          f"{worst:.1e}; of the trained model exported: {after:.1e}{'' if good else '  DIFFERS'}")
    return good


def check_tokenizer(program, folder):
    """A byte-pair vocabulary in a checkpoint: AutoTokenizer opens the export and gives the ids of the vocabulary's file."""
    files = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden" / "byte_pairs"
    config = {
        "train_batch_size": 2, "model": {"type": "gpt", "n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 16},
        "data": {"type": "text", "path": str(files / "corpus.txt"), "tokenizer": str(files / "tokenizer.json")},
        "training": {"max_steps": 1, "checkpoint_interval": 1}, "device": {"type": "cpu", "threads": 1},
    }
    (folder / "config.json").write_text(json.dumps(config))
    run(program, "--config", folder / "config.json", "--output", folder / "run", "--quiet")
    run(program, "export", "--checkpoint", folder / "run", "--format", "huggingface", "--output", folder / "out")
    text = (files / "corpus.txt").read_text()
    ours = AutoTokenizer.from_pretrained(folder / "out")
    ids = ours.encode(text, add_special_tokens=False)
    theirs = Tokenizer.from_file(str(files / "tokenizer.json")).encode(text, add_special_tokens=False).ids
    end = json.loads((folder / "out" / "config.json").read_text())["eos_token_id"]
    good = ids == theirs and ours.decode(ids) == text and ours.eos_token_id == end
    print(f"tokenizer {len(ids)} ids of {len(text)} characters: {'the same' if good else 'DIFFER'}")
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--zerotrain", default="build/zerotrain")
    program = str(pathlib.Path(parser.parse_args().zerotrain).resolve())
    good = True
    for seed, (name, settings) in enumerate(MODELS.items()):
        with tempfile.TemporaryDirectory() as folder:
            good &= check(program, name, make_model(seed, **settings), pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        good &= check_tokenizer(program, pathlib.Path(folder))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
