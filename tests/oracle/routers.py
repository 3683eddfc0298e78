"""Routers with balancing, room of experts and a z-loss, as the papers
have them and docs/experts.md says; in torch, for make_experts_golden.py.

GShard (arXiv 2006.16668), Switch (2101.03961), ST-MoE (2202.08906), DeepSeek-V3
(2412.19437) and balancing without a loss (2408.15664).
"""

import math
import types

import torch


class Routers:
    """`gates` by what the parameters of each begin with."""

    def __init__(self, gates, experts, sequence_length):
        self.experts = dict({"routing": "dropless", "balance": "none"},
                            **experts)
        self.length = sequence_length
        self.gates = list(gates.values())
        self.states = {}
        generator = torch.Generator().manual_seed(7)
        ending = {"global": "load", "bias": "e_score_correction_bias"}.get(
            self.experts["balance"])
        for name, gate in gates.items():
            gate.forward = types.MethodType(
                lambda gate, x: self.forward(gate, x), gate)
            gate.state = None
            if ending is None:
                continue
            # Not the zeros of a new job, so that the first step has a balance.
            gate.state = 0.1 * torch.rand(gate.num_experts,
                                          generator=generator).double()
            self.states[f"{name}.{ending}"] = gate.state

    def forward(self, gate, x):
        x = x.reshape(-1, gate.hidden_dim)
        logits = torch.nn.functional.linear(x, gate.weight)
        p = torch.exp(logits - torch.logsumexp(logits, 1, keepdim=True))
        biased = self.experts["balance"] == "bias"
        keys = p.detach() + gate.state if biased else p.detach()
        choices = torch.topk(keys, gate.top_k, dim=1).indices
        gates = p.gather(1, choices)
        if self.experts["routing"] != "switch":  # Mixtral's and GShard's
            gates = gates / gates.sum(1, keepdim=True)
        if self.experts["routing"] != "dropless":
            gates = gates * self.room(choices, gate)
        gate.seen = logits, p, choices
        return logits, gates, choices

    def room(self, choices, gate):
        """1 where the choice finds a place, else 0: first choices first."""
        places = math.ceil(self.experts["capacity_factor"] * gate.top_k *
                           self.length / gate.num_experts)
        mask = torch.zeros(choices.shape, dtype=torch.float64)
        for first in range(0, len(choices), self.length):
            taken = [0] * gate.num_experts
            for j in range(gate.top_k):
                for row in range(first, first + self.length):
                    expert = choices[row, j].item()
                    mask[row, j] = taken[expert] < places
                    taken[expert] += 1
        return mask

    def loss(self):
        total = 0
        for gate in self.gates:
            logits, p, choices = gate.seen
            total = total + (self.experts.get("z_coefficient", 0) *
                             torch.logsumexp(logits, 1).square().mean())
            scale = self.experts.get("balance_coefficient", 0)
            if self.experts["balance"] == "global":
                total = total + scale * (gate.state * p.mean(0)).sum()
            if self.experts["balance"] == "sequence":
                total = total + scale * self.by_sequence(gate, p, choices)
        return total

    def by_sequence(self, gate, p, choices):
        chosen = torch.nn.functional.one_hot(choices, gate.num_experts).sum(1)
        chosen = chosen.double().unflatten(0, (-1, self.length)).mean(1)
        f = chosen * gate.num_experts / gate.top_k
        share = p.unflatten(0, (-1, self.length)).mean(1)
        return (f * share).sum(1).mean()

    def count(self, gate):
        return torch.bincount(gate.seen[2].flatten(),
                              minlength=gate.num_experts).double()

    def counts(self):
        return {name: self.count(gate)
                for name, gate in zip(self.states, self.gates)}

    def step(self):
        for gate in self.gates:
            if gate.state is None:
                continue
            load = self.count(gate)
            mean = load.mean()
            if self.experts["balance"] == "bias":
                gate.state += (self.experts["bias_rate"] *
                               torch.sign(mean - load))
            else:
                gate.state.copy_(load / mean)


class DeepseekRouters:
    """Those of a model that has a bias in the choice itself: what chooses is
    transformers', what keeps the load even is here."""

    def __init__(self, model, experts, sequence_length):
        self.experts = experts
        self.length = sequence_length
        self.gates, self.states = [], {}
        generator = torch.Generator().manual_seed(7)
        for number, layer in enumerate(model.model.layers):
            if not hasattr(layer.mlp, "gate"):
                continue
            gate = layer.mlp.gate
            gate.e_score_correction_bias.copy_(
                0.1 * torch.rand(gate.num_experts, generator=generator))
            gate.register_forward_hook(self.see)
            self.gates.append(gate)
            name = f"model.layers.{number}.mlp.gate.e_score_correction_bias"
            self.states[name] = gate.e_score_correction_bias

    @staticmethod
    def see(gate, _, outputs):
        logits, _, gate.choices = outputs
        gate.scores = torch.sigmoid(logits)

    def loss(self):
        total = 0
        for gate in self.gates:
            p = gate.scores / gate.scores.sum(1, keepdim=True)
            chosen = torch.nn.functional.one_hot(
                gate.choices, gate.num_experts).sum(1).double()
            f = (chosen.unflatten(0, (-1, self.length)).mean(1) *
                 gate.num_experts / gate.choices.shape[1])
            share = p.unflatten(0, (-1, self.length)).mean(1)
            total = total + (f * share).sum(1).mean()
        return self.experts["balance_coefficient"] * total

    def count(self, gate):
        return torch.bincount(gate.choices.flatten(),
                              minlength=gate.num_experts).double()

    def counts(self):
        """Of a bias that stays as it is nothing is counted."""
        if self.experts["balance"] != "bias":
            return {}
        return {name: self.count(gate)
                for name, gate in zip(self.states, self.gates)}

    def step(self):
        for gate in self.gates:
            load = self.count(gate)
            gate.e_score_correction_bias += (
                self.experts.get("bias_rate", 0) *
                torch.sign(load.mean() - load))
