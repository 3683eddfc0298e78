"""Writes the golden files of tests/oracle/gpt2_golden_test.cc.

Two small GPT-2 models, tied and untied, and each again with frozen parameters:
of the tied one the embeddings and the first block, so that no gradient goes
back beyond the second block; of the other biases and parts of both blocks. The
tied one also with groups of the optimizer, and the other one with Muon and
with Adafactor.
golden.py says what is in a file and README.md how to run this. Sizes are no
multiples of anything.
"""

import os
import sys

import transformers

import golden

SIZES = dict(n_layer=2, n_embd=24, n_head=3, n_inner=89, vocab_size=61,
             n_positions=19)


def gpt2(path, tied, freeze=(), groups=(), lora=None, completions=False):
    config = transformers.GPT2Config(
        **SIZES, activation_function="gelu_new", resid_pdrop=0, embd_pdrop=0,
        attn_pdrop=0, tie_word_embeddings=tied, bos_token_id=0, eos_token_id=0,
        attn_implementation="eager")
    job_model = dict(
        architecture="gpt2", num_hidden_layers=SIZES["n_layer"],
        hidden_size=SIZES["n_embd"], num_attention_heads=SIZES["n_head"],
        intermediate_size=SIZES["n_inner"], vocab_size=SIZES["vocab_size"],
        max_position_embeddings=SIZES["n_positions"],
        layer_norm_epsilon=config.layer_norm_epsilon,
        tie_word_embeddings=tied)
    model = transformers.GPT2LMHeadModel(config).double().train()
    golden.write_golden(path, model, job_model, freeze=freeze, groups=groups,
                        lora=lora, completions=completions)


def main():
    folder = os.path.dirname(os.path.abspath(sys.argv[0]))

    def file(name):
        return os.path.join(folder, name + ".safetensors")

    gpt2(file("gpt2_tied"), tied=True)
    gpt2(file("gpt2_untied"), tied=False)
    gpt2(file("gpt2_tied_frozen"), tied=True,
         freeze=["*.wte.*", "*.wpe.*", "*.h.0.*"])
    gpt2(file("gpt2_untied_frozen"), tied=False,
         freeze=["*bias", "*.h.0.attn.*", "*.h.1.mlp.c_fc.*", "*.ln_2.weight"])
    # AdamW at three learning rates, with a decay of norms; Lion, also on
    # biases; SGD with and without a moment.
    gpt2(file("gpt2_tied_groups"), tied=True, groups=[
        dict(match=["*.ln_*", "*bias"], weight_decay=0.05, lr_scale=0.5),
        dict(match=["*.wte.*"], lr_scale=0.1, betas=(0.8, 0.999)),
        dict(match=["*.mlp.c_fc.*"], name="lion", weight_decay=0.3),
        dict(match=["*.wpe.*", "*.h.1.attn.c_proj.weight"], name="sgd",
             momentum=0.9, nesterov=True, lr_scale=10),
        dict(match=["*.h.0.ln_1.*"], name="sgd", weight_decay=0.2)])
    gpt2(file("gpt2_untied_muon"), tied=False, groups=[
        dict(match=["*.attn.*.weight", "*.mlp.*.weight"], name="muon",
             momentum=0.95, nesterov=True)])
    gpt2(file("gpt2_untied_adafactor"), tied=False, groups=[
        dict(match=["*"], name="adafactor", lr_scale=10),
        dict(match=["*.h.0.*"], name="adafactor", scale_parameter=False,
             decay_rate=-0.5)])
    gpt2(file("gpt2_completions"), tied=True, completions=True)
    gpt2(file("gpt2_lora"), tied=True, lora=dict(
        rank=3, alpha=8.0, dropout=0.0, rank_stabilized=False,
        modules=["c_attn", "attn.c_proj", "c_fc", "mlp.c_proj"]))


if __name__ == "__main__":
    main()
