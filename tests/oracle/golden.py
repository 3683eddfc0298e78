"""What the golden files of all architectures have in common.

write_golden() trains a small random model of `transformers` in float64 for a
few AdamW steps with clipping and decay groups, and writes what it saw as one
safetensors file: initial weights, batches, logits, the gradients of the first
step, losses and gradient norms of all steps, and the weights after them. Some
parameters may be frozen; these have no gradients. Some may be in groups of the
optimizer, with settings or a rule of their own. Or PEFT's adapters are trained
beside the model.

All weights, biases and norms are random, so that nothing passes by being zero
or one. Numbers are stored as f32 where the tests' bounds do not notice.
"""

import fnmatch
import json
import os

import numpy
import peft
import torch
import transformers
from safetensors.numpy import save_file

STEPS = 5
SEQUENCES = 3
SEQUENCE_LENGTH = 17
LR = 1e-3
BETAS = (0.9, 0.95)
# The loss does not depend on the biases of the keys (softmax ignores a shift),
# so their gradients are rounding noise, which Adam would blow up to the size of
# a whole step if epsilon were far below the noise of f32.
EPS = 1e-6
WEIGHT_DECAY = 0.1
CLIP = 0.5  # below the norms that occur, so that clipping takes part
IGNORED = -100  # torch's ignore_index; -1 in the file, as in a job
SEED = 20240229


def randomise(model, generator):
    """Weights that f32 holds exactly; one-dimensional `weight`s are norms'."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator,
                                dtype=torch.float64)
            norm = parameter.dim() == 1 and name.endswith("weight")
            value = 1 + 0.2 * noise if norm else 0.2 * noise
            parameter.copy_(value.float())


def arrays(prefix, tensors):
    return {prefix + name: numpy.ascontiguousarray(
        tensor.detach().numpy().astype(numpy.float32))
        for name, tensor in tensors}


def loss_of(model, tokens, targets):
    logits = model(tokens, use_cache=False).logits
    assert logits.dtype == torch.float64
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
    return logits, loss


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al., arXiv 2302.06675, as it stands there."""

    def __init__(self, params, lr, betas, weight_decay):
        super().__init__(params, dict(lr=lr, betas=betas,
                                      weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                c = beta1 * m + (1 - beta1) * p.grad
                p -= group["lr"] * (c.sign() + group["weight_decay"] * p)
                m.copy_(beta2 * m + (1 - beta2) * p.grad)


class Muon(torch.optim.Optimizer):
    """Section 2.2 of arXiv 2502.16982, with Newton-Schulz in float64."""

    def __init__(self, params, lr, momentum, nesterov):
        super().__init__(params, dict(lr=lr, momentum=momentum,
                                      nesterov=nesterov, weight_decay=0))

    @staticmethod
    def orthogonal(matrix):
        a, b, c = 3.4445, -4.7750, 2.0315
        tall = matrix.shape[0] > matrix.shape[1]
        x = matrix.T if tall else matrix
        x = x / (x.norm() + 1e-7)
        for _ in range(5):
            gram = x @ x.T
            x = a * x + (b * gram + c * gram @ gram) @ x
        return x.T if tall else x

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                u = self.state[p].setdefault("u", torch.zeros_like(p))
                u.copy_(group["momentum"] * u + p.grad)
                d = p.grad + group["momentum"] * u if group["nesterov"] else u
                size = 0.2 * max(p.shape) ** 0.5
                p *= 1 - group["lr"] * group["weight_decay"]
                p -= group["lr"] * size * self.orthogonal(d)


class Adafactor(transformers.optimization.Adafactor):
    """That of transformers, in float64, with the fields of a job."""

    def __init__(self, params, lr, rule):
        super().__init__(params, lr=lr, eps=(rule["eps1"], rule["eps2"]),
                         clip_threshold=1.0, decay_rate=rule["decay_rate"],
                         beta1=None, scale_parameter=rule["scale_parameter"],
                         relative_step=False, warmup_init=False)


def new_optimizer(rule, params):
    """`params` are torch's groups; `rule` is as a group of a job's optimizer."""
    lr = LR * rule["lr_scale"]
    if rule["name"] == "adafactor":
        return Adafactor(params, lr, rule)
    if rule["name"] == "lion":
        return Lion(params, lr=lr, betas=rule["betas"], weight_decay=0)
    if rule["name"] == "muon":
        return Muon(params, lr=lr, momentum=rule["momentum"],
                    nesterov=rule["nesterov"])
    if rule["name"] == "sgd":
        return torch.optim.SGD(params, lr=lr, momentum=rule["momentum"],
                               nesterov=rule["nesterov"])
    return torch.optim.AdamW(params, lr=lr, betas=rule["betas"],
                             eps=rule["eps"])


def resolved(group):
    """A group with all settings but weight_decay, as in a resolved job."""
    betas = (0.9, 0.99) if group.get("name") == "lion" else BETAS
    if group.get("name") == "adafactor":
        # As EPS is: above the rounding noise of gradients that are zero.
        group = dict(dict(decay_rate=-0.8, eps1=EPS ** 2, eps2=1e-3,
                          scale_parameter=True), **group)
    eps = EPS if group.get("name", "adamw") == "adamw" else 1e-8
    return dict(dict(name="adamw", lr_scale=1, betas=betas, eps=eps,
                     momentum=0, nesterov=False), **group)


def optimizers(parameters, groups):
    """One for each rule: the optimizer's own, then those of the groups.

    A parameter is in the last group that matches it. Where a group says how
    much decays, all of its parameters do; else matrices do.
    """
    def rule_of(name):
        matching = [g for g, group in enumerate(groups)
                    if any(fnmatch.fnmatchcase(name, p)
                           for p in group["match"])]
        return matching[-1] if matching else -1

    made = []
    for index, rule in enumerate([resolved({})] + groups, start=-1):
        params = []
        for name, parameter in parameters:
            if rule_of(name) != index:
                continue
            decay = WEIGHT_DECAY if parameter.dim() >= 2 else 0.0
            params.append({"params": [parameter],
                           "weight_decay": rule.get("weight_decay", decay)})
        if params:
            made.append(new_optimizer(rule, params))
    return made


def whole(name, tensor):
    return [(name, tensor)]


class NoRouters:
    """What keeps experts evenly loaded, where nothing does."""

    states = {}  # by the names of ours

    def loss(self):
        return 0

    def counts(self):
        """Of the step, by state: what ours has in the gradient's place."""
        return {}

    def step(self):
        """Changes the states by what the step counted."""


def adapted(model, lora):
    """PEFT's model of it; `lora` is as a job's training.lora."""
    return peft.get_peft_model(model, peft.LoraConfig(
        r=lora["rank"], lora_alpha=lora["alpha"],
        target_modules=lora["modules"], use_rslora=lora["rank_stabilized"],
        lora_dropout=0, task_type="CAUSAL_LM",
        fan_in_fan_out=isinstance(model, transformers.GPT2LMHeadModel)))


def without_peft(name, tensor):
    """The parts of a model with adapters, under the names of ours."""
    for added in ("base_model.model.", "base_layer.", "default."):
        name = name.replace(added, "")
    return [(name, tensor)]


def nothing_added(targets):
    """To the loss, of the batch that the model has seen last."""
    return 0


def leave_out(batch, generator):
    """Targets that do not count: all but one, half, and some of a sequence."""
    targets = batch[:, 1]
    draws = torch.rand(targets.shape, generator=generator)
    for sequence, share in enumerate((0, 0.5, 0.9)):
        targets[:, sequence][draws[:, sequence] >= share] = IGNORED
    targets[:, 0, 3] = 5


def write_golden(path, model, job_model, parts=whole, freeze=(), groups=(),
                 routers=NoRouters(), lora=None, completions=False,
                 added=nothing_added):
    """`model` in float64; `job_model` is the same as a job's model section.

    `parts` are the parameters that we make of a tensor, where not the same.
    Parameters whose names match one of the patterns `freeze` are not trained.
    `groups` are those of a job's optimizer. With `lora`, a job's
    training.lora, adapters are trained, and nothing else. With `completions`,
    some targets do not count: of the first sequence of a batch all but one.
    `added` is what targets add to the loss.
    """
    if lora:
        model, parts = adapted(model, lora).double(), without_peft
    groups = [resolved(group) for group in groups]

    def ours(tensors):
        return [part for named in tensors for part in parts(*named)]

    generator = torch.Generator().manual_seed(SEED)
    randomise(model, generator)
    batch = torch.randint(job_model["vocab_size"],
                          (STEPS, 2, SEQUENCES, SEQUENCE_LENGTH),
                          generator=generator)
    if completions:
        leave_out(batch, generator)
    parameters = list(model.named_parameters())  # tied ones once
    out = arrays("initial.", ours(parameters))
    out.update(arrays("initial.", routers.states.items()))
    out["batches"] = batch.masked_fill(batch == IGNORED, -1).numpy().astype(
        numpy.int32)
    for name, parameter in parameters:
        parameter.requires_grad_(
            "lora_" in name if lora else
            not any(fnmatch.fnmatchcase(name, f) for f in freeze))
    trained = [(n, p) for n, p in parameters if p.requires_grad]
    rules = optimizers(trained, groups)
    losses, norms, added_losses = [], [], []
    for step in range(STEPS):
        model.zero_grad()
        logits, loss = loss_of(model, batch[step, 0], batch[step, 1])
        more = added(batch[step, 1])
        (loss + more + routers.loss()).backward()
        added_losses.append(float(torch.as_tensor(more).detach()))
        if step == 0:
            out.update(arrays("", [("logits", logits)]))
            out.update(arrays("gradient.",
                              ours((n, p.grad) for n, p in trained)))
            out.update(arrays("gradient.", routers.counts().items()))
        norms.append(torch.nn.utils.clip_grad_norm_(
            [p for _, p in trained], CLIP).item())
        losses.append(loss.item())
        for optimizer in rules:
            optimizer.step()
        routers.step()
    assert min(norms) > 1.5 * CLIP, norms
    out.update(arrays("final.", ours(parameters)))
    out.update(arrays("final.", routers.states.items()))
    out["losses"] = numpy.array(losses)
    out["norms"] = numpy.array(norms)
    if added is not nothing_added:
        out["added_losses"] = numpy.array(added_losses)
    recipe = dict(lr=LR, beta1=BETAS[0], beta2=BETAS[1], eps=EPS,
                  weight_decay=WEIGHT_DECAY, clip=CLIP)
    frozen = {"freeze": json.dumps(list(freeze))} if freeze else {}
    optimizer = dict(name="adamw", lr=LR, betas=BETAS, eps=EPS,
                     weight_decay=WEIGHT_DECAY, groups=groups)
    with_lora = {"lora": json.dumps(lora)} if lora else {}
    grouped = {"optimizer": json.dumps(optimizer)} if groups else {}
    save_file(out, path, metadata={
        "model": json.dumps(job_model),
        "recipe": json.dumps(recipe),
        **frozen,
        **grouped,
        **with_lora,
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__})
    os.chmod(path, 0o644)
    print(os.path.basename(path), os.path.getsize(path), "bytes; losses",
          losses, "norms", norms)
