"""The ways in which pytorch_train.py trains: functions that make a step, which returns its loss as a number. Needs torch."""

import contextlib
import copy

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_models import LEARNING_RATES, PRESETS, Gpt, Mlp, make_optimizer

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def make_training(arguments, ranks):
    """The step, and what else is to be told of it."""
    if arguments.model == "mlp":
        return mlp(arguments), {}
    model = Gpt(**PRESETS[arguments.model])
    model.recomputes = arguments.checkpointing
    facts = {"parameters": sum(parameter.numel() for parameter in model.parameters())}
    if arguments.way == "deepspeed":
        return deepspeed(arguments, model, facts, ranks), facts
    return pytorch(arguments, model, facts), facts


def tokens(arguments):
    preset = PRESETS[arguments.model]
    chunk = torch.randint(preset["vocabulary"], (arguments.batch, preset["length"] + 1))
    return chunk[:, :-1], chunk[:, 1:]


def autocast(dtype):
    return contextlib.nullcontext() if dtype == "fp32" else torch.autocast("cpu", dtype=TYPES[dtype])


def pytorch(arguments, model, facts):
    precision = autocast(arguments.dtype)
    if arguments.way == "fsdp2":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        options = {}
        if arguments.dtype != "fp32":
            options["mp_policy"] = MixedPrecisionPolicy(param_dtype=TYPES[arguments.dtype])
            precision = contextlib.nullcontext()
        mesh = torch.distributed.init_device_mesh("cpu", (torch.distributed.get_world_size(),))
        for block in model.blocks:
            fully_shard(block, mesh=mesh, **options)
        fully_shard(model, mesh=mesh, **options)
    loss_of = model
    if arguments.way == "ddp":
        loss_of = nn.parallel.DistributedDataParallel(model)
    elif arguments.way == "compile":
        loss_of = torch.compile(model)
    optimizer, facts["fused"] = make_optimizer(model.parameters(), LEARNING_RATES[arguments.model])
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, enabled=arguments.dtype == "fp16")

    def step():
        inputs, targets = tokens(arguments)
        optimizer.zero_grad(set_to_none=True)
        with precision:
            loss = loss_of(inputs, targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    return step


def deepspeed(arguments, model, facts, ranks):
    import deepspeed as package
    package.init_distributed(dist_backend="gloo", auto_mpi_discovery=False, verbose=False)
    optimizer, facts["fused"] = make_optimizer(model.parameters(), LEARNING_RATES[arguments.model])
    facts["versions"] = {"torch": torch.__version__, "deepspeed": package.__version__}
    engine, *_ = package.initialize(model=model, optimizer=optimizer, config={
        "train_micro_batch_size_per_gpu": arguments.batch,
        "train_batch_size": arguments.batch * ranks,
        "gradient_clipping": 1.0,
        "steps_per_print": 10**9,
        "zero_allow_untested_optimizer": True,  # the same AdamW as the others, in place of an extension to be compiled
        "zero_force_ds_cpu_optimizer": False,
        "zero_optimization": {"stage": arguments.stage},
        "bf16": {"enabled": arguments.dtype == "bf16"},
        "fp16": {"enabled": arguments.dtype == "fp16", "initial_scale_power": 12},
    })

    def step():
        loss = engine(*tokens(arguments))
        engine.backward(loss)
        engine.step()
        return loss.item()

    return step


def mlp(arguments):
    model = Mlp()
    batches = [(torch.randn(arguments.batch, 512), torch.randn(arguments.batch, 1)) for _ in range(64)]
    position = 0

    def batch():
        nonlocal position
        position += 1
        return batches[position % len(batches)]

    if arguments.masters:
        return mlp_with_masters(model, batch)
    loss_of = torch.compile(model) if arguments.way == "compile" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=arguments.dtype == "fp16")

    def step():
        features, targets = batch()
        optimizer.zero_grad(set_to_none=True)
        with autocast(arguments.dtype):
            loss = loss_of(features, targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    return step


def mlp_with_masters(masters, batch):
    """configs/mixed_precision.json: fp32 weights copied to fp16 in each step, loss times 1024, update in fp32."""
    half = copy.deepcopy(masters).half()
    optimizer = torch.optim.SGD(masters.parameters(), lr=1e-3)

    def step():
        features, targets = batch()
        with torch.no_grad():
            for copied, master in zip(half.parameters(), masters.parameters()):
                copied.copy_(master)
                copied.grad = None
        loss = F.mse_loss(half.layers(features.half()), targets.half())
        (loss * 1024.0).backward()
        for copied, master in zip(half.parameters(), masters.parameters()):
            master.grad = copied.grad.float().div_(1024.0)
        optimizer.step()
        return loss.item()

    return step
