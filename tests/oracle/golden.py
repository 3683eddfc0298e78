"""What the golden files of all architectures have in common.

write_golden() trains a small random model of `transformers` in float64 for a
few AdamW steps with clipping and decay groups, and writes what it saw as one
safetensors file: initial weights, batches, logits, the gradients of the first
step, losses and gradient norms of all steps, and the weights after them. Some
parameters may be frozen; these have no gradients.

All weights, biases and norms are random, so that nothing passes by being zero
or one. Numbers are stored as f32 where the tests' bounds do not notice.
"""

import fnmatch
import json
import os

import numpy
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
        logits.flatten(0, 1), targets.flatten())
    return logits, loss


def adamw(parameters):
    decay = [p for _, p in parameters if p.dim() >= 2]
    others = [p for _, p in parameters if p.dim() < 2]
    return torch.optim.AdamW(
        [{"params": decay, "weight_decay": WEIGHT_DECAY},
         {"params": others, "weight_decay": 0.0}],
        lr=LR, betas=BETAS, eps=EPS)


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


def write_golden(path, model, job_model, parts=whole, freeze=(),
                 routers=NoRouters()):
    """`model` in float64; `job_model` is the same as a job's model section.

    `parts` are the parameters that we make of a tensor, where not the same.
    Parameters whose names match one of the patterns `freeze` are not trained.
    """

    def ours(tensors):
        return [part for named in tensors for part in parts(*named)]

    generator = torch.Generator().manual_seed(SEED)
    randomise(model, generator)
    batch = torch.randint(job_model["vocab_size"],
                          (STEPS, 2, SEQUENCES, SEQUENCE_LENGTH),
                          generator=generator)
    parameters = list(model.named_parameters())  # tied ones once
    out = arrays("initial.", ours(parameters))
    out.update(arrays("initial.", routers.states.items()))
    out["batches"] = batch.numpy().astype(numpy.int32)
    for name, parameter in parameters:
        parameter.requires_grad_(
            not any(fnmatch.fnmatchcase(name, f) for f in freeze))
    trained = [(n, p) for n, p in parameters if p.requires_grad]
    optimizer = adamw(trained)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        logits, loss = loss_of(model, batch[step, 0], batch[step, 1])
        (loss + routers.loss()).backward()
        if step == 0:
            out.update(arrays("", [("logits", logits)]))
            out.update(arrays("gradient.",
                              ours((n, p.grad) for n, p in trained)))
            out.update(arrays("gradient.", routers.counts().items()))
        norms.append(torch.nn.utils.clip_grad_norm_(
            [p for _, p in trained], CLIP).item())
        losses.append(loss.item())
        optimizer.step()
        routers.step()
    assert min(norms) > 1.5 * CLIP, norms
    out.update(arrays("final.", ours(parameters)))
    out.update(arrays("final.", routers.states.items()))
    out["losses"] = numpy.array(losses)
    out["norms"] = numpy.array(norms)
    recipe = dict(lr=LR, beta1=BETAS[0], beta2=BETAS[1], eps=EPS,
                  weight_decay=WEIGHT_DECAY, clip=CLIP)
    frozen = {"freeze": json.dumps(list(freeze))} if freeze else {}
    save_file(out, path, metadata={
        "model": json.dumps(job_model),
        "recipe": json.dumps(recipe),
        **frozen,
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__})
    os.chmod(path, 0o644)
    print(os.path.basename(path), os.path.getsize(path), "bytes; losses",
          losses, "norms", norms)
