"""Tensor parallelism for the models of pytorch_models.py, with PyTorch's own
means: torch.distributed.tensor.parallel, as its tutorial and torchtitan use it.

Columns of q, k, v and of the MLP's first products, rows of the second ones; the
vocabulary of the embedding, of the head and of the loss (loss_parallel). With
`sequence` norms and residuals have their share of the tokens. A block exchanges
what Megatron-LM's does: what several products read is gathered once, and its
gradients are summed before they are. Other values are plain tensors, which cost
less Python than DTensors do.
"""

import contextlib

import torch
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor import parallel


def cut(model, sequence, mesh):
    """In place, over all of the mesh. REQUIRES that all have the same model."""
    tied = model.head.weight is model.tokens.weight
    between = Shard(1) if sequence else Replicate()
    rows = parallel.RowwiseParallel(output_layouts=between)
    plan = {
        "tokens": parallel.RowwiseParallel(input_layouts=Replicate(),
                                           output_layouts=between),
        # The norm in front gives a DTensor where the sequence is cut.
        "head": parallel.ColwiseParallel(input_layouts=between,
                                         output_layouts=Shard(-1),
                                         use_local_output=False),
    }
    if sequence:
        plan["norm"] = parallel.SequenceParallel()
        if model.positions is not None:
            plan["positions"] = parallel.SequenceParallel(
                use_local_output=True)
    parallel.parallelize_module(model, mesh, plan)
    if tied:
        model.head.weight = model.tokens.weight
    for block in model.blocks:
        if hasattr(block.attention, "qkv"):
            group_heads(block.attention, mesh.size())
        parallel.parallelize_module(block, mesh,
                                    block_plan(block, rows, between))


def block_plan(block, rows, between):
    # One DTensor, whose gradients from all products that read it are summed
    # where they are, and exchanged once.
    def gathered(*others):
        return parallel.PrepareModuleInput(
            input_layouts=(between, *others),
            desired_input_layouts=(Replicate(), *others))

    plan = {"attention": gathered(None), "mlp": gathered()}
    for name in ("attention", "mlp"):
        for product, _ in getattr(block, name).named_children():
            last = product in ("out", "down")
            plan[f"{name}.{product}"] = (rows if last else
                                         parallel.ColwiseParallel())
    if between == Shard(1):
        plan["norm_1"] = plan["norm_2"] = parallel.SequenceParallel()
    return plan


def group_heads(attention, ranks):
    """Orders the rows of q, k, v so that each rank's are next to each other."""
    for parameter in attention.qkv.parameters():
        parts = parameter.data.unflatten(0, (3, ranks, -1))
        parameter.data = parts.transpose(0, 1).flatten(0, 2).contiguous()


def loss_context(is_cut):
    """Around forward and backward."""
    return parallel.loss_parallel() if is_cut else contextlib.nullcontext()


def clip_gradients(parameters, limit):
    """torch.nn.utils.clip_grad_norm_, which takes either sort of tensor."""
    kinds = [of_kind for of_kind in split(parameters) if of_kind]
    for parameter in parameters:
        sum_gradient(parameter)
    norms = [whole(torch.nn.utils.get_total_norm([p.grad for p in of_kind]))
             for of_kind in kinds]
    total = torch.linalg.vector_norm(torch.stack(norms))
    for of_kind in kinds:
        torch.nn.utils.clip_grads_with_norm_(of_kind, limit, total)


def sum_gradient(parameter):
    """Of a norm over a part of the tokens: once, not for each that reads it."""
    gradient = parameter.grad
    if isinstance(gradient, DTensor) and gradient.placements[0].is_partial():
        parameter.grad = gradient.redistribute(placements=[Replicate()])


def whole(value):
    return value.full_tensor() if isinstance(value, DTensor) else value


def split(parameters):
    """Those that are cut, and those that every process has."""
    parameters = list(parameters)
    return ([p for p in parameters if isinstance(p, DTensor)],
            [p for p in parameters if not isinstance(p, DTensor)])
