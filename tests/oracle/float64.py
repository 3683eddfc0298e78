"""Models of `transformers` in float64 throughout.

They take norms, softmax and rotary embeddings in float32 whatever the model's
dtype. Within float64() those are in float64 too, with nothing else changed:
build and run the model inside.
"""

import contextlib

import torch
from transformers import modeling_rope_utils
from transformers.models.deepseek_v3 import modeling_deepseek_v3
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.llama import modeling_llama
from transformers.models.mistral import modeling_mistral
from transformers.models.mixtral import modeling_mixtral
from transformers.models.olmoe import modeling_olmoe
from transformers.models.qwen2 import modeling_qwen2
from transformers.models.qwen2_moe import modeling_qwen2_moe
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.qwen3_moe import modeling_qwen3_moe

MODULES = (modeling_rope_utils, modeling_deepseek_v3, modeling_gpt_neox,
           modeling_llama, modeling_mistral, modeling_mixtral, modeling_olmoe,
           modeling_qwen2, modeling_qwen2_moe, modeling_qwen3,
           modeling_qwen3_moe)


class DoubleTorch:
    """`torch` with float64 where a module writes float32."""

    float = float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


@contextlib.contextmanager
def float64():
    to_float = torch.Tensor.float
    for module in MODULES:
        module.torch = DoubleTorch()
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.Tensor.float = to_float
        for module in MODULES:
            module.torch = torch
