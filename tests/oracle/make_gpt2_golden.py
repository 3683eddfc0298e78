"""Writes the golden files of tests/oracle/gpt2_golden_test.cc.

A small random GPT-2 of `transformers` in float64: its logits, its loss, the
gradient of every parameter, and its weights after five AdamW steps with
clipping and decay groups. See README.md for how to run this.

Sizes are no multiples of anything, and all weights, biases and norms are
random, so that nothing passes by being zero or one.
"""

import json
import os
import sys

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
SIZES = dict(n_layer=2, n_embd=24, n_head=3, n_inner=89, vocab_size=61,
             n_positions=19)


def randomise(model, generator):
    """Weights that f32 holds exactly, in a float64 model."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator,
                                dtype=torch.float64)
            norm = ".ln_" in name and name.endswith("weight")
            value = 1 + 0.2 * noise if norm else 0.2 * noise
            parameter.copy_(value.float().double())


def arrays(prefix, tensors, dtype):
    return {prefix + name: numpy.ascontiguousarray(
        tensor.detach().numpy().astype(dtype))
        for name, tensor in tensors}


def loss_of(model, tokens, targets):
    logits = model(tokens).logits
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten())
    return logits, loss


def golden(tied, path):
    generator = torch.Generator().manual_seed(20240229)
    config = transformers.GPT2Config(
        **SIZES, activation_function="gelu_new", resid_pdrop=0, embd_pdrop=0,
        attn_pdrop=0, tie_word_embeddings=tied, bos_token_id=0, eos_token_id=0,
        attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config).double().train()
    randomise(model, generator)
    batch = torch.randint(SIZES["vocab_size"],
                          (STEPS, 2, SEQUENCES, SEQUENCE_LENGTH),
                          generator=generator)
    parameters = list(model.named_parameters())  # tied ones once
    out = arrays("initial.", parameters, numpy.float32)
    out["batches"] = batch.numpy().astype(numpy.int32)

    decay = [p for _, p in parameters if p.dim() >= 2]
    others = [p for _, p in parameters if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": WEIGHT_DECAY},
         {"params": others, "weight_decay": 0.0}],
        lr=LR, betas=BETAS, eps=EPS)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        logits, loss = loss_of(model, batch[step, 0], batch[step, 1])
        loss.backward()
        if step == 0:
            out["logits"] = logits.detach().numpy()
            out.update(arrays("gradient.",
                              [(n, p.grad) for n, p in parameters],
                              numpy.float64))
        norms.append(torch.nn.utils.clip_grad_norm_(
            [p for _, p in parameters], CLIP).item())
        losses.append(loss.item())
        optimizer.step()
    assert min(norms) > 2 * CLIP, norms
    out.update(arrays("final.", parameters, numpy.float64))
    out["losses"] = numpy.array(losses)
    out["norms"] = numpy.array(norms)
    recipe = dict(lr=LR, beta1=BETAS[0], beta2=BETAS[1], eps=EPS,
                  weight_decay=WEIGHT_DECAY, clip=CLIP,
                  layer_norm_epsilon=config.layer_norm_epsilon, **SIZES)
    save_file(out, path, metadata={
        "recipe": json.dumps(recipe),
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__})
    os.chmod(path, 0o644)
    print(path, os.path.getsize(path), "bytes; losses", losses, "norms", norms)


def main():
    folder = os.path.dirname(os.path.abspath(sys.argv[0]))
    golden(True, os.path.join(folder, "gpt2_tied.safetensors"))
    golden(False, os.path.join(folder, "gpt2_untied.safetensors"))


if __name__ == "__main__":
    main()
