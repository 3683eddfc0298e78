"""Layers of experts for the models of pytorch_models.py, with what people have.

The experts are transformers' own module (MixtralExperts), in the two of its
implementations that fit into memory: "eager", a loop over experts, and
"grouped_mm", torch's grouped product of sorted rows. ("batched_mm" copies the
weights of an expert for each row.) Over processes, of which each has some of the
experts, rows go there and back by all_to_all_single.
"""

import torch
import torch.distributed
from torch import nn
from transformers import MixtralConfig
from transformers.models.mixtral.modeling_mixtral import MixtralExperts

IMPLEMENTATIONS = {"loop": "eager", "grouped": "grouped_mm"}


class Experts(nn.Module):
    """Each token's best experts, whose gates add up to 1."""

    def __init__(self, hidden, intermediate, experts, choices, **_):
        super().__init__()
        self.choices, self.count = choices, experts
        self.processes = 1
        self.router = nn.Linear(hidden, experts, bias=False)
        self.config = MixtralConfig(
            hidden_size=hidden, intermediate_size=intermediate,
            num_local_experts=experts, num_experts_per_tok=choices)
        self.experts = MixtralExperts(self.config)

    # Numbers of rows differ from step to step.
    @torch.compiler.disable
    def forward(self, x):
        tokens = x.flatten(0, 1)
        gates, chosen = torch.topk(
            torch.softmax(self.router(tokens).float(), dim=-1), self.choices)
        gates = gates / gates.sum(dim=-1, keepdim=True)
        if self.processes == 1:
            y = self.experts(tokens, chosen, gates.to(x.dtype))
        else:
            y = self.exchange(tokens, chosen, gates.to(x.dtype))
        return y.view_as(x)

    def exchange(self, tokens, chosen, gates):
        order = torch.argsort(chosen.flatten(), stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=self.count)
        received = torch.empty_like(counts)
        torch.distributed.all_to_all_single(received, counts)
        sent_rows = counts.view(self.processes, -1).sum(dim=1).tolist()
        received = received.view(self.processes, -1)
        received_rows = received.sum(dim=1).tolist()
        rows = AllToAll.apply(tokens[order // self.choices], sent_rows,
                              received_rows, self.processes)
        own = torch.arange(received.shape[1]).repeat(self.processes)
        expert = own.repeat_interleave(received.flatten())
        y = self.experts(rows, expert[:, None],
                         torch.ones_like(rows[:, :1]))
        y = AllToAll.apply(y, received_rows, sent_rows, 1 / self.processes)
        by_choice = torch.empty_like(y).index_copy(0, order, y)
        return (by_choice.unflatten(0, (-1, self.choices)) *
                gates[..., None]).sum(dim=1)


class AllToAll(torch.autograd.Function):
    """Blocks of rows to all processes. Gradients go back, times `scale`: those
    of experts are the mean over processes, as those of all else are."""

    @staticmethod
    def forward(context, x, sent, received, scale):
        context.blocks, context.scale = (sent, received), scale
        return exchanged(x, sent, received)

    @staticmethod
    def backward(context, gradient):
        sent, received = context.blocks
        back = exchanged(gradient, received, sent)
        return back.mul_(context.scale), None, None, None


def exchanged(x, sent, received):
    y = x.new_empty(sum(received), *x.shape[1:])
    torch.distributed.all_to_all_single(y, x.contiguous(), received, sent)
    return y


def layers(model):
    return [module for module in model.modules() if isinstance(module, Experts)]


def use(model, implementation):
    """"loop" or "grouped"."""
    for layer in layers(model):
        layer.config._experts_implementation = IMPLEMENTATIONS[implementation]


def cut(model):
    """Each process keeps its share of the experts of every layer. REQUIRES that
    all have the same model."""
    processes = torch.distributed.get_world_size()
    rank = torch.distributed.get_rank()
    for layer in layers(model):
        layer.processes = processes
        layer.experts.num_experts = layer.count // processes
        for parameter in layer.experts.parameters():
            parameter.data = parameter.data.chunk(processes)[rank].clone()


def names(model):
    """Of parameters that other processes do not have."""
    return [name for name, _ in model.named_parameters() if ".experts." in name]


def clip_gradients(dense, experts, limit):
    """By the norm of all processes' gradients."""
    norms = [torch.nn.utils.get_total_norm([p.grad for p in of_kind])
             for of_kind in (dense, experts)]
    squared = norms[1] ** 2
    torch.distributed.all_reduce(squared)
    total = (norms[0] ** 2 + squared).sqrt()
    torch.nn.utils.clip_grads_with_norm_(dense + experts, limit, total)
