"""Writes the golden files of tests/oracle/llama_golden_test.cc.

Small models of Llama's relatives, each with what it does not share with Llama,
and all with heads that do not add up to the hidden size or are shared. golden.py
says what is in a file and README.md how to run this.
"""

import os
import sys

import torch
import transformers

import golden
from float64 import float64

# The fields of a job's model, which are those of the configs.
BASE = dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4,
            num_key_value_heads=2, head_dim=6, intermediate_size=23,
            vocab_size=37, max_position_embeddings=23, rms_norm_eps=1e-5,
            rope_theta=500.0, tie_word_embeddings=False)

MODELS = {
    # As wide a window as the sequences are long.
    "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig,
                dict(BASE, sliding_window=golden.SEQUENCE_LENGTH)),
    "qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config,
              dict(BASE, tie_word_embeddings=True)),
    "qwen3": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config,
              dict(BASE, num_key_value_heads=1)),
}


def main():
    folder = os.path.dirname(os.path.abspath(sys.argv[0]))
    for name, (model_class, config_class, job_model) in MODELS.items():
        fields = dict(job_model)
        rope = dict(rope_type="default", rope_theta=fields.pop("rope_theta"))
        config = config_class(**fields, rope_parameters=rope,
                              attention_dropout=0, bos_token_id=0,
                              eos_token_id=0, attn_implementation="eager")
        with float64():
            model = model_class(config).double().train()
            assert model.model.rotary_emb.inv_freq.dtype == torch.float64
            golden.write_golden(os.path.join(folder, f"{name}.safetensors"),
                                model, dict(job_model, architecture=name))


if __name__ == "__main__":
    main()
