"""Llama of `transformers` in float64 throughout.

It takes norms, softmax and rotary embeddings in float32 whatever the model's
dtype. Within float64() those are in float64 too, with nothing else changed:
build and run the model inside.
"""

import contextlib

import torch
from transformers import modeling_rope_utils
from transformers.models.llama import modeling_llama


class DoubleTorch:
    """`torch` with float64 where a module writes float32."""

    float = float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


@contextlib.contextmanager
def float64():
    modules = (modeling_llama, modeling_rope_utils)
    to_float = torch.Tensor.float
    for module in modules:
        module.torch = DoubleTorch()
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.Tensor.float = to_float
        for module in modules:
            module.torch = torch
