"""Configs of the check: small ones whose curves are compared, and GPT-2's shapes whose speed is measured."""

import json

from runner import Skipped

OPTIMIZER = {"type": "AdamW", "params": {"lr": 6e-4, "betas": [0.9, 0.95], "weight_decay": 0.1}}

STEPS = 8  # of the small ones

# GPT-2 small and XL (Radford et al. 2019), T = 1024. `micro_batches`: tried from the first, until one fits.
SHAPES = {
    "124M": {"layers": 12, "heads": 12, "width": 768, "micro_batches": [64, 32, 16, 8, 4], "steps": 20},
    "1.5B": {"layers": 48, "heads": 25, "width": 1600, "micro_batches": [16, 8, 4, 2, 1], "steps": 10},
}
RESERVE = 0.92  # part of the card's memory that the runs may take
VOCABULARY = 50304  # GPT-2's 50257 and what makes it a multiple of 128, in both programs
LENGTH = 1024


def gpt(layers, heads, width, length, vocabulary):
    return {"type": "gpt", "n_layer": layers, "n_head": heads, "n_embd": width, "n_positions": length,
            "vocab_size": vocabulary, "activation_function": "gelu_new", "bias": True, "tie_word_embeddings": True,
            "embd_pdrop": 0.0, "resid_pdrop": 0.0, "attn_pdrop": 0.0}


def small_configs(emulated):
    """The two models whose curves are compared: micro-batches of a quarter of the batch, dropout in the GPT."""
    shared = {"gradient_clipping": 1.0, "optimizer": {"type": "AdamW", "params": {"lr": 2e-3, "weight_decay": 0.1}},
              "data_types": {"grad_accum_dtype": "fp32"},
              "training": {"max_steps": STEPS, "seed": 1234, "eval_interval": 0, "checkpoint_interval": 0}}
    model = gpt(1, 1, 32, 16, 64) if emulated else gpt(2, 4, 256, 128, 1000)
    layers = [16, 24, 1] if emulated else [512, 1000, 1]
    model["resid_pdrop"] = model["attn_pdrop"] = 0.1
    return {
        "gpt": {**shared, "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "model": model,
                "data": {"type": "synthetic", "task": "tokens", "samples": 64}},
        "mlp": {**shared, "train_batch_size": 64, "train_micro_batch_size_per_gpu": 16,
                "model": {"type": "mlp", "layers": layers, "activation": "gelu", "loss": "mse"},
                "data": {"type": "synthetic", "task": "regression", "samples": 256}},
    }


def speed_config(shape, micro_batch, steps):
    return {"train_batch_size": micro_batch, "gradient_clipping": 1.0, "steps_per_print": steps,
            "optimizer": OPTIMIZER,
            "model": gpt(shape["layers"], shape["heads"], shape["width"], LENGTH, VOCABULARY),
            "data": {"type": "synthetic", "task": "tokens", "samples": 16 * micro_batch},
            "training": {"max_steps": steps, "seed": 1234, "eval_interval": 0, "checkpoint_interval": 0}}


def precision_sets(name):
    """Arguments of zerotrain. In fp16 a scale that fits at once: a skipped step would be shorter than a real one."""
    return {"fp32": [], "bf16": ["--set", "bf16.enabled=true"],
            "fp16": ["--set", "fp16.enabled=true", "--set", "fp16.initial_scale_power=12"]}[name]


def speed_sets(name):
    """The same for speed: in bf16 the host reads the loss a step late, which takes steps that are never skipped."""
    late = ["--set", "bf16.check_grad_overflow=false", "--set", "training.report_delay=1"]
    return precision_sets(name) + (late if name == "bf16" else [])


def micro_batch_of(check, name):
    """The largest micro-batch with which either program fits beside the other's weights and states."""
    shape = SHAPES[name]
    # Each program: 16 bytes a parameter. One at a time: 40 C bytes a token and layer (34 are planned in bf16), and the
    # logits, which PyTorch has in fp32 for a while.
    parameters = 12 * shape["layers"] * shape["width"] ** 2 + VOCABULARY * shape["width"]
    token = 40 * shape["width"] * shape["layers"] + 8 * VOCABULARY
    for micro in shape["micro_batches"]:
        if 32 * parameters + micro * LENGTH * token <= check.facts["memory"] * RESERVE:
            return micro
    raise Skipped(f"GPT-2 {name} does not fit the card's memory")


def write(check, name, config):
    path = check.work / f"{name}.json"
    path.write_text(json.dumps(config, indent=2) + "\n")
    return path


def flops_per_token(shape, length=LENGTH, vocabulary=VOCABULARY):
    """Of forward and backward: 6 per weight of a matrix product, and 6 L C T for attention, counted causal.

    (Kaplan et al. 2020, section 2.1, with the backward pass twice the forward pass.)
    """
    layers, width = shape["layers"], shape["width"]
    return 6.0 * (12 * layers * width * width + vocabulary * width) + 6.0 * layers * width * length
