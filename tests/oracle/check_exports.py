"""Imports and exports models, and has them read by several `transformers`.

    python check_exports.py --troupe bazel-bin/clients/cli/troupe \\
        --pythons ~/torch4/bin/python ~/torch5/bin/python

Makes a small random model of each kind of config (run by the newest
transformers), brings each through `troupe import` and `troupe export`, and
compares the loss of what was exported with that of what was made, in each of
the Python environments. README.md says how to install them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
IDS = [(7 * i * i + 3 * i + 1) % 97 for i in range(60)]

# Runs in an environment: makes a model, or says the loss of one.
MAKE = """
import sys, json, torch, transformers
name, fields, out = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
sys.path.insert(0, sys.argv[4])
torch.manual_seed(1)
config = transformers.AutoConfig.for_model(name, **fields)
model = transformers.AutoModelForCausalLM.from_config(config).float()
with torch.no_grad():
    for p in model.parameters():
        p.copy_(torch.randn_like(p) * (0.35 if p.dim() > 1 else 0.1)
                + (0 if p.dim() > 1 else 1))
    for name, b in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            b.copy_(0.2 * torch.rand_like(b))
model.save_pretrained(out)
if "num_mtp_layers" in fields and fields["num_mtp_layers"]:
    from make_hf_fixtures import add_module
    from safetensors.torch import load_file, save_file
    path = out + "/model.safetensors"
    tensors = load_file(path)
    add_module(tensors, layer=fields["num_hidden_layers"])
    save_file(tensors, path, metadata={"format": "pt"})
"""
LOSS = """
import sys, json, torch, transformers
transformers.logging.set_verbosity_error()
model = transformers.AutoModelForCausalLM.from_pretrained(
    sys.argv[1], dtype=torch.float32).eval()
ids = torch.tensor([json.loads(sys.argv[2])])
with torch.no_grad():
    logits = model(ids).logits[0, :-1]
print(torch.nn.functional.cross_entropy(logits, ids[0, 1:]).item())
"""
# The same of the module behind the last layer, as transformers 5 finds it.
MODULE_LOSS = """
import sys, json, torch, transformers
from transformers.modeling_layers import MtpModel
transformers.logging.set_verbosity_error()
model = transformers.AutoModelForCausalLM.from_pretrained(
    sys.argv[1], dtype=torch.float32, attn_implementation="eager").eval()
module = MtpModel.from_pretrained(model).float().eval()
ids = torch.tensor([json.loads(sys.argv[2])])
at = torch.arange(ids.shape[1] - 1)[None]
mask = torch.full((at.shape[1], at.shape[1]), float("-inf")).triu(1)[None, None]
with torch.no_grad():
    hidden = model.model(ids[:, :-1]).last_hidden_state
    made = module.layers[0](
        model.model.embed_tokens(ids[:, 1:]), hidden,
        position_embeddings=model.model.rotary_emb(hidden, at),
        attention_mask=mask, position_ids=at, cache=None)
    logits = model.lm_head(made)[0, :-1]
print(torch.nn.functional.cross_entropy(logits, ids[0, 2:]).item())
"""

SIZES = dict(vocab_size=97, hidden_size=32, num_hidden_layers=2,
             num_attention_heads=4, intermediate_size=48,
             max_position_embeddings=64, bos_token_id=None, eos_token_id=None)
GROUPED = dict(SIZES, num_key_value_heads=2)


def rope(kind, theta=500000.0, **more):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=theta, **more))


DEEPSEEK = dict(SIZES, num_key_value_heads=4, q_lora_rank=24, kv_lora_rank=20,
                qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5,
                n_routed_experts=8, num_experts_per_tok=3, n_group=4,
                topk_group=2, moe_intermediate_size=12, n_shared_experts=2,
                first_k_dense_replace=1)
LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
CASES = {
    "gpt2": ("gpt2", dict(vocab_size=97, n_embd=32, n_layer=2, n_head=4,
                          n_positions=64, bos_token_id=None,
                          eos_token_id=None)),
    "llama_theta": ("llama", dict(GROUPED, **rope("default"))),
    "llama_linear": ("llama", dict(GROUPED, **rope("linear", factor=2.0))),
    "llama_dynamic": ("llama", dict(GROUPED, **rope("dynamic", factor=2.0))),
    "llama_llama3": ("llama", dict(GROUPED, **LLAMA3)),
    "llama_yarn": ("llama", dict(GROUPED, **rope(
        "yarn", factor=4.0, original_max_position_embeddings=16,
        beta_fast=2.0, beta_slow=0.25))),
    "llama_longrope": ("llama", dict(GROUPED, **rope(
        "longrope", factor=4.0, short_factor=[1.0, 1.5, 2.0, 3.0],
        long_factor=[2.0, 3.0, 4.0, 5.0],
        original_max_position_embeddings=16))),
    "mistral": ("mistral", dict(GROUPED, sliding_window=None,
                                **rope("default"))),
    "qwen2": ("qwen2", dict(GROUPED, **rope("default"))),
    "qwen3": ("qwen3", dict(GROUPED, head_dim=8, **rope("default"))),
    "mixtral": ("mixtral", dict(GROUPED, num_local_experts=6,
                                num_experts_per_tok=2, sliding_window=None,
                                **rope("default"))),
    "qwen2_moe": ("qwen2_moe", dict(
        GROUPED, num_experts=6, num_experts_per_tok=3, norm_topk_prob=False,
        decoder_sparse_step=2, moe_intermediate_size=12,
        shared_expert_intermediate_size=20, **rope("default"))),
    "qwen3_moe": ("qwen3_moe", dict(
        GROUPED, head_dim=8, num_experts=6, num_experts_per_tok=3,
        norm_topk_prob=True, mlp_only_layers=[0], moe_intermediate_size=12,
        **rope("default"))),
    "olmoe": ("olmoe", dict(GROUPED, num_experts=6, num_experts_per_tok=2,
                            **rope("default"))),
    "deepseek_v3": ("deepseek_v3", dict(DEEPSEEK, **rope("default"))),
    "deepseek_v3_yarn": ("deepseek_v3", dict(
        DEEPSEEK, q_lora_rank=None, rope_interleave=False,
        attention_bias=True, norm_topk_prob=False, **rope(
            "yarn", factor=4.0, original_max_position_embeddings=16,
            beta_fast=2.0, beta_slow=0.25, mscale=1.0, mscale_all_dim=0.7))),
    # transformers looks for modules behind 61 layers only.
    "deepseek_v3_mtp": ("deepseek_v3", dict(
        DEEPSEEK, num_hidden_layers=61, num_mtp_layers=1, **rope("default"))),
    "gpt_neox_whole": ("gpt_neox", dict(SIZES, **rope(
        "default", 5000.0, partial_rotary_factor=1.0))),
    "gpt_neox_half": ("gpt_neox", dict(SIZES, **rope(
        "default", 5000.0, partial_rotary_factor=0.5))),
}


def run(*command):
    """What it prints last; its errors end this."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:2])}: {done.stderr[-2000:]}")
    return (done.stdout.strip().splitlines() or [""])[-1]


def main():
    parser = argparse.ArgumentParser(description="Checks exports.")
    parser.add_argument("--troupe", required=True)
    parser.add_argument("--pythons", nargs="+", required=True,
                        help="the last one makes the models")
    parser.add_argument("--tolerance", type=float, default=1e-5,
                        help="of the loss, relative")
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for case, (name, fields) in CASES.items():
            made, checkpoints, exported = (
                os.path.join(folder, case, part)
                for part in ("made", "checkpoints", "exported"))
            os.makedirs(os.path.join(folder, case))
            newest = arguments.pythons[-1]
            run(newest, "-c", MAKE, name, json.dumps(fields), made, HERE)
            want = float(run(newest, "-c", LOSS, made, json.dumps(IDS)))
            run(arguments.troupe, "import", made, "--to", checkpoints)
            run(arguments.troupe, "export", "--checkpoint",
                os.path.join(checkpoints, "step-00000000"), "--to", exported)
            losses = [float(run(python, "-c", LOSS, exported, json.dumps(IDS)))
                      for python in arguments.pythons]
            good = all(abs(loss / want - 1) <= arguments.tolerance
                       for loss in losses)
            if fields.get("num_mtp_layers"):
                was, of_module = (
                    float(run(newest, "-c", MODULE_LOSS, part, json.dumps(IDS)))
                    for part in (made, exported))
                good &= abs(of_module / was - 1) <= arguments.tolerance
                losses.append(of_module)
            wrong += not good
            print(f"{case}: {want:.6f}, exported",
                  " ".join(f"{loss:.6f}" for loss in losses),
                  "" if good else "WRONG", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
