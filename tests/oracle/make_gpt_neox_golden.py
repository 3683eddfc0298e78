"""Writes the golden files of tests/oracle/gpt_neox_golden_test.cc.

Small GPT-NeoX models with both forms of the residual and of GELU. golden.py says
what is in a file and README.md how to run this.
"""

import os
import sys

import torch
import transformers

import golden
from float64 import float64

# Ours: the fields of a job's model.
BASE = dict(num_hidden_layers=2, hidden_size=24, num_attention_heads=3,
            intermediate_size=29, vocab_size=37, max_position_embeddings=23,
            layer_norm_epsilon=1e-5, rope_theta=500.0,
            partial_rotary_factor=0.5, tie_word_embeddings=False,
            use_parallel_residual=True, attention_bias=True, hidden_act="gelu")

VARIANTS = {
    "parallel": BASE,
    "sequential": dict(BASE, use_parallel_residual=False, attention_bias=False,
                       hidden_act="gelu_new", tie_word_embeddings=True,
                       partial_rotary_factor=1.0, num_hidden_layers=1),
}


def parts_for(heads):
    """Queries, keys and values, which theirs has head by head in one tensor."""

    def parts(name, tensor):
        if "query_key_value" not in name:
            # As save_pretrained writes it.
            return [(name.replace("lm_head", "embed_out"), tensor)]
        by_head = tensor.unflatten(0, (heads, 3, -1))
        return [(name.replace("query_key_value", part),
                 by_head[:, i].flatten(0, 1))
                for i, part in enumerate(("query", "key", "value"))]

    return parts


def main():
    folder = os.path.dirname(os.path.abspath(sys.argv[0]))
    for name, job_model in VARIANTS.items():
        fields = dict(job_model)
        rope = dict(rope_type="default", rope_theta=fields.pop("rope_theta"),
                    partial_rotary_factor=fields.pop("partial_rotary_factor"))
        epsilon = fields.pop("layer_norm_epsilon")
        config = transformers.GPTNeoXConfig(
            **fields, layer_norm_eps=epsilon, rope_parameters=rope, bos_token_id=0, eos_token_id=0,
            attn_implementation="eager")
        with float64():
            model = transformers.GPTNeoXForCausalLM(config).double().train()
            rotary = model.gpt_neox.rotary_emb
            assert rotary.inv_freq.dtype == torch.float64
            golden.write_golden(
                os.path.join(folder, f"gpt_neox_{name}.safetensors"), model,
                dict(job_model, architecture="gpt_neox"),
                parts_for(job_model["num_attention_heads"]))


if __name__ == "__main__":
    main()
