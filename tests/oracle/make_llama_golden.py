"""Writes the golden files of tests/oracle/llama_golden_test.cc.

Small Llama models: tied and untied, with and without biases, grouped-query and
multi-head attention, heads that do not add up to the hidden size, and one model
of one block for each way of scaling rotary embeddings. golden.py says what is
in a file and README.md how to run this.
"""

import os
import sys

import torch
import transformers

import golden
from float64 import float64

# Ours: the field of a job's model. Theirs: of LlamaConfig, where the names or
# the meaning differ.
BASE = dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4,
            num_key_value_heads=2, head_dim=6, intermediate_size=23,
            vocab_size=37, max_position_embeddings=23, rms_norm_eps=1e-5,
            rope_theta=500.0, tie_word_embeddings=False, attention_bias=False,
            mlp_bias=False)
# One block with eight frequencies, over which the sequence of 17 tokens turns
# between twice and hardly at all.
ROPE = dict(BASE, num_hidden_layers=1, hidden_size=12, num_attention_heads=2,
            num_key_value_heads=1, head_dim=16, intermediate_size=13,
            max_position_embeddings=32, tie_word_embeddings=True)
SHORT_FACTOR = [1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0]
LONG_FACTOR = [1.0, 1.3, 1.9, 2.5, 3.0, 3.7, 4.5, 5.5]

VARIANTS = {
    "untied": BASE,
    "tied": dict(BASE, tie_word_embeddings=True, num_key_value_heads=1),
    "biases": dict(BASE, attention_bias=True, mlp_bias=True, head_dim=5 * 2,
                   num_key_value_heads=4, num_hidden_layers=1),
    "rope_linear": dict(ROPE, rope_scaling=dict(type="linear", factor=2.5)),
    # Dynamic scaling is none until a sequence outgrows the first training.
    "rope_dynamic_within": dict(ROPE, rope_scaling=dict(
        type="dynamic", factor=2.0, original_max_position_embeddings=20)),
    "rope_dynamic_beyond": dict(ROPE, rope_scaling=dict(
        type="dynamic", factor=2.0, original_max_position_embeddings=11)),
    "rope_llama3": dict(ROPE, rope_scaling=dict(
        type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=24)),
    "rope_yarn": dict(ROPE, rope_scaling=dict(
        type="yarn", factor=2.0, original_max_position_embeddings=16,
        beta_fast=2.0, beta_slow=0.25, truncate=True)),
    "rope_yarn_mscale": dict(ROPE, rope_scaling=dict(
        type="yarn", factor=2.0, original_max_position_embeddings=16,
        beta_fast=2.0, beta_slow=0.25, mscale=1.0, mscale_all_dim=0.5,
        truncate=False)),
    "rope_longrope_short": dict(ROPE, rope_scaling=dict(
        type="longrope", factor=1.6, original_max_position_embeddings=20,
        short_factor=SHORT_FACTOR, long_factor=LONG_FACTOR)),
    "rope_longrope_long": dict(ROPE, rope_scaling=dict(
        type="longrope", original_max_position_embeddings=16,
        short_factor=SHORT_FACTOR, long_factor=LONG_FACTOR)),
}


def llama_config(job_model):
    fields = dict(job_model)
    rope = dict(fields.pop("rope_scaling", None) or {"type": "default"})
    rope["rope_type"] = rope.pop("type")
    rope["rope_theta"] = fields.pop("rope_theta")
    if rope["rope_type"] == "dynamic":
        # transformers calls the length of the first training
        # max_position_embeddings here, and lets sequences be longer.
        fields["max_position_embeddings"] = rope.pop(
            "original_max_position_embeddings")
    return transformers.LlamaConfig(
        **fields, rope_parameters=rope, hidden_act="silu", attention_dropout=0,
        bos_token_id=0, eos_token_id=0, attn_implementation="eager")


def main():
    folder = os.path.dirname(os.path.abspath(sys.argv[0]))
    for name, fields in VARIANTS.items():
        with float64():
            model = transformers.LlamaForCausalLM(
                llama_config(fields)).double().train()
            assert model.model.rotary_emb.inv_freq.dtype == torch.float64
            golden.write_golden(
                os.path.join(folder, f"llama_{name}.safetensors"), model,
                dict(fields, architecture="llama"))
    with float64():
        model = transformers.LlamaForCausalLM(
            llama_config(BASE)).double().train()
        golden.write_golden(
            os.path.join(folder, "llama_completions.safetensors"), model,
            dict(BASE, architecture="llama"), completions=True)
        model = transformers.LlamaForCausalLM(
            llama_config(BASE)).double().train()
        golden.write_golden(
            os.path.join(folder, "llama_lora.safetensors"), model,
            dict(BASE, architecture="llama"), lora=dict(
                rank=4, alpha=6.0, dropout=0.0, rank_stabilized=True,
                modules=["q_proj", "v_proj", "o_proj", "gate_proj",
                         "down_proj"]))


if __name__ == "__main__":
    main()
