#!/usr/bin/env python3
"""Writes the files in formats of other programs that zerotrain's tests read: tests/golden/formats/.

Run by hand, in a virtual environment outside the repository that has torch, numpy, safetensors and transformers:

    python scripts/golden/make_formats.py

package.safetensors     tensors of several formats and metadata, written by the safetensors package
gpt2/                   a small GPT-2 with random weights as transformers saves it
gpt2_sharded/           another one: head not tied, exact GELU, inner width of its own, several files with an index
model.bin, model_bf16.bin   the weights of gpt2/ as llm.c keeps them
../gpt2.golden, ../gpt2_sharded.golden   what transformers computes with them (make_golden.py describes the format):
                        logits [B, T, V] and the losses of some steps of AdamW on one batch
"""

import json
import pathlib
import shutil
import struct

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import GPT2Config, GPT2LMHeadModel

GOLDEN = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden"
FOLDER = GOLDEN / "formats"
STEPS = 12
RUN = dict(type="AdamW", lr=5e-3, betas=[0.9, 0.99], eps=1e-8, weight_decay=0.1)
ROWS, LENGTH = 4, 12


def write_package_file():
    values = np.array([[0.0, -0.0, 1.5], [-2.25, 65504.0, 1e-3]])
    tensors = {
        "single": values.astype(np.float32),
        "half": values.astype(np.float16),
        "double": values.astype(np.float64),
        "counts": np.arange(-2, 3, dtype=np.int64),
        "scalar": np.array(7.0, dtype=np.float32),
        "empty": np.zeros((0, 4), dtype=np.float32),
        "flags": np.array([True, False, True]),
        "größe/ü \"quoted\"": np.array([1, 2, 255], dtype=np.uint8),
    }
    save_file(tensors, FOLDER / "package.safetensors", metadata={"format": "np", "note": "a \"text\"\n with ü"})


def random_model(seed, **settings):
    torch.manual_seed(seed)
    config = GPT2Config(n_layer=2, n_head=2, n_embd=8, n_positions=LENGTH, vocab_size=29, bos_token_id=None,
                        eos_token_id=None, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **settings)
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # nothing stays at a value that hides a mistake
            parameter.normal_(1.0 if ".ln_" in name and name.endswith("weight") else 0.0, 0.2)
    return model


def model_section(config):
    keys = ["n_layer", "n_head", "n_embd", "n_positions", "vocab_size", "n_inner", "activation_function",
            "tie_word_embeddings"]
    return dict(type="gpt", bias=True, **{key: getattr(config, key) for key in keys})


def write_golden(name, header, tensors):
    offset, table = 0, {}
    for key, value in tensors.items():
        table[key] = dict(dtype=str(value.dtype), shape=list(value.shape), offset=offset)
        offset += value.nbytes
    with open(GOLDEN / f"{name}.golden", "wb") as file:
        file.write(json.dumps(dict(header, tensors=table), separators=(",", ":")).encode() + b"\n")
        for value in tensors.values():
            file.write(np.ascontiguousarray(value).tobytes())


def losses_of(model, tokens, targets):
    logits = model(input_ids=tokens).logits
    return logits, torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(model, tokens, targets):
    optimizer = torch.optim.AdamW(model.parameters(), lr=RUN["lr"], betas=RUN["betas"], eps=RUN["eps"],
                                  weight_decay=RUN["weight_decay"])
    losses = []
    for _ in range(STEPS):
        _, loss = losses_of(model, tokens, targets)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return np.array(losses)


def write_model(name, model, **saving):
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    model.save_pretrained(FOLDER / name, **saving)
    generator = np.random.default_rng(5)
    ids = generator.integers(0, model.config.vocab_size, (ROWS, LENGTH + 1))
    tokens, targets = torch.tensor(ids[:, :-1]), torch.tensor(ids[:, 1:])
    fresh = GPT2LMHeadModel.from_pretrained(FOLDER / name)
    with torch.no_grad():
        logits = losses_of(fresh, tokens, targets)[0].numpy()
    losses64 = train(GPT2LMHeadModel.from_pretrained(FOLDER / name).double(), tokens, targets)
    losses = train(fresh, tokens, targets)
    write_golden(name, dict(model=model_section(model.config), steps=STEPS, runs=dict(adamw=RUN)),
                 {"tokens": tokens.numpy().astype(np.int32), "targets": targets.numpy().astype(np.int32),
                  "logits": logits.astype(np.float32), "loss/adamw": losses, "loss64/adamw": losses64})


def write_llmc(model, path, dtype):
    """llm.c: 256 integers; then each kind of tensor over all layers, the vocabulary padded to a multiple of 128."""
    config = model.config
    padded = -(-config.vocab_size // 128) * 128
    weights = {name.removeprefix("transformer."): value.detach() for name, value in model.named_parameters()}
    header = [20240326, 3 if dtype is torch.float32 else 5, config.n_positions, config.vocab_size, config.n_layer,
              config.n_head, config.n_embd, padded]
    tensors = [torch.cat([weights["wte.weight"], torch.zeros(padded - config.vocab_size, config.n_embd)]),
               weights["wpe.weight"]]
    for kind in ["ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"]:
        for part in ["weight", "bias"]:
            for layer in range(config.n_layer):
                value = weights[f"h.{layer}.{kind}.{part}"]
                tensors.append(value.T if ".c_" in kind and part == "weight" else value)
    tensors += [weights["ln_f.weight"], weights["ln_f.bias"]]
    with open(path, "wb") as file:
        file.write(struct.pack("<256i", *header, *[0] * (256 - len(header))))
        for value in tensors:
            value = value.contiguous().to(dtype)
            file.write((value.view(torch.int16) if dtype is torch.bfloat16 else value).numpy().tobytes())


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_package_file()
    plain = random_model(1)
    write_model("gpt2", plain)
    write_llmc(plain, FOLDER / "model.bin", torch.float32)
    write_llmc(plain, FOLDER / "model_bf16.bin", torch.bfloat16)
    write_model("gpt2_sharded", random_model(2, tie_word_embeddings=False, activation_function="gelu", n_inner=20),
                max_shard_size=6000)
