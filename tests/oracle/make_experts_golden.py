"""Writes the golden files of tests/oracle/experts_golden_test.cc.

Small models whose tokens go to a few of many experts. transformers 5 keeps the
weights of a layer's experts in two tensors; ours are three, of gates, of ups and
of downs. A GPT-2 with experts is nobody's: its layers are written here. golden.py
says what is in a file and README.md how to run this.
"""

import math
import os
import sys

import torch
import transformers
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek

import golden
from float64 import float64
from routers import DeepseekRouters, Routers

# The fields of a job's model, which are those of the configs but for the
# numbers of experts.
BASE = dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4,
            num_key_value_heads=2, head_dim=6, intermediate_size=11,
            vocab_size=37, max_position_embeddings=23, rms_norm_eps=1e-5,
            rope_theta=500.0, tie_word_embeddings=False, num_experts_per_tok=2)
# Heads of values have another width than those of keys, of which a part turns.
DEEPSEEK = dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4,
                q_lora_rank=12, kv_lora_rank=10, qk_nope_head_dim=6,
                qk_rope_head_dim=4, v_head_dim=5, intermediate_size=23,
                vocab_size=37, max_position_embeddings=32, rms_norm_eps=1e-5,
                rope_theta=500.0, tie_word_embeddings=False, num_experts=8,
                num_experts_per_tok=3, n_group=4, topk_group=2,
                moe_intermediate_size=9, n_shared_experts=2,
                first_k_dense_replace=1, norm_topk_prob=True,
                routed_scaling_factor=2.5, rope_interleave=True,
                attention_bias=False)
QWEN = dict(BASE, num_experts=7, num_experts_per_tok=3, intermediate_size=23,
            moe_intermediate_size=9)

MODELS = {
    "mixtral": (transformers.MixtralForCausalLM, transformers.MixtralConfig,
                dict(BASE, num_experts=5)),
    # A dense layer in front; gates as the softmax gives them.
    "qwen3_moe": (transformers.Qwen3MoeForCausalLM, transformers.Qwen3MoeConfig,
                  dict(QWEN, mlp_only_layers=[0], norm_topk_prob=False)),
    "qwen3_moe_renormalised": (
        transformers.Qwen3MoeForCausalLM, transformers.Qwen3MoeConfig,
        dict(QWEN, decoder_sparse_step=2, norm_topk_prob=True)),
    # An expert for all tokens, beside those that are chosen.
    "qwen2_moe": (transformers.Qwen2MoeForCausalLM, transformers.Qwen2MoeConfig,
                  dict(QWEN, head_dim=4, norm_topk_prob=False,
                       shared_expert_intermediate_size=13)),
    # Norms of all queries, and of all keys, of a token.
    "olmoe": (transformers.OlmoeForCausalLM, transformers.OlmoeConfig,
              dict(BASE, head_dim=4, num_experts=7, num_experts_per_tok=3,
                   norm_topk_prob=False)),
    # A dense layer in front; a bias that chooses, beside a loss.
    "deepseek_v3": (
        transformers.DeepseekV3ForCausalLM, transformers.DeepseekV3Config,
        dict(DEEPSEEK, experts=dict(balance="bias", bias_rate=0.01,
                                    balance_coefficient=0.3))),
    # No latents of queries, and all else otherwise, too; the bias stays.
    "deepseek_v3_yarn": (
        transformers.DeepseekV3ForCausalLM, transformers.DeepseekV3Config,
        dict(DEEPSEEK, q_lora_rank=0, rope_interleave=False,
             attention_bias=True, norm_topk_prob=False, n_shared_experts=1,
             first_k_dense_replace=0, n_group=1, topk_group=1,
             tie_word_embeddings=True,
             rope_scaling=dict(
                 type="yarn", factor=2.0, original_max_position_embeddings=16,
                 beta_fast=2.0, beta_slow=0.25, mscale=1.0, mscale_all_dim=0.7,
                 truncate=True),
             experts=dict(balance="sequence", balance_coefficient=0.2))),
}

# With modules that predict further tokens, which transformers has not
# (DeepSeek-V3, section 2.2).
for tied in (False, True):
    MODELS["deepseek_v3_mtp" + ("_tied" if tied else "")] = (
        transformers.DeepseekV3ForCausalLM, transformers.DeepseekV3Config,
        dict(DEEPSEEK, tie_word_embeddings=tied,
             num_nextn_predict_layers=1 if tied else 2, mtp_coefficient=0.4,
             experts=dict(balance="bias", bias_rate=0.01,
                          balance_coefficient=0.3)))

# Mixtral with what model.experts asks for.
ROUTERS = {
    "router_sequence": dict(balance="sequence", balance_coefficient=0.3,
                            z_coefficient=0.05),
    "router_global": dict(balance="global", balance_coefficient=0.3),
    "router_bias": dict(balance="bias", bias_rate=0.01),
    "router_capacity": dict(routing="capacity", capacity_factor=1.0),
    "router_gshard": dict(routing="gshard", capacity_factor=0.75,
                          balance="sequence", balance_coefficient=0.2),
    "router_switch": dict(routing="switch", capacity_factor=1.0,
                          balance="global", balance_coefficient=0.1),
}
for name, experts in ROUTERS.items():
    choices = 1 if experts.get("routing") == "switch" else 2
    MODELS[name] = (transformers.MixtralForCausalLM,
                    transformers.MixtralConfig,
                    dict(BASE, num_experts=5, num_experts_per_tok=choices,
                         experts=experts))


# As GShard (arXiv 2006.16668) and Switch (2101.03961) have it.
GPT2 = dict(architecture="gpt2", num_hidden_layers=2, hidden_size=24,
            num_attention_heads=3, intermediate_size=29, vocab_size=61,
            max_position_embeddings=19, layer_norm_epsilon=1e-5, num_experts=5)
GPT2_MODELS = {
    # A dense layer in front.
    "gpt2_gshard": dict(GPT2, num_experts_per_tok=2, decoder_sparse_step=2,
                        tie_word_embeddings=False,
                        experts=dict(routing="gshard", capacity_factor=0.75,
                                     balance="sequence",
                                     balance_coefficient=0.2)),
    "gpt2_switch": dict(GPT2, num_experts_per_tok=1, decoder_sparse_step=1,
                        tie_word_embeddings=True,
                        experts=dict(routing="switch", capacity_factor=1.0,
                                     balance="global",
                                     balance_coefficient=0.1)),
}


class Gate(torch.nn.Module):
    """What routers.py makes a router of."""

    def __init__(self, hidden, experts, choices):
        super().__init__()
        self.hidden_dim, self.num_experts, self.top_k = hidden, experts, choices
        self.weight = torch.nn.Parameter(torch.empty(experts, hidden))


class Gpt2Experts(torch.nn.Module):
    def __init__(self, hidden, intermediate, experts, choices):
        super().__init__()
        self.router = Gate(hidden, experts, choices)
        self.c_fc = torch.nn.Parameter(
            torch.empty(experts, intermediate, hidden))
        self.c_proj = torch.nn.Parameter(
            torch.empty(experts, hidden, intermediate))

    def forward(self, x):
        _, gates, choices = self.router(x)
        tokens = x.flatten(0, 1)
        y = torch.zeros_like(tokens)
        for choice in range(choices.shape[1]):
            chosen = choices[:, choice]
            up = torch.einsum("th,tih->ti", tokens, self.c_fc[chosen])
            hidden = torch.nn.functional.gelu(up, approximate="tanh")
            down = torch.einsum("ti,thi->th", hidden, self.c_proj[chosen])
            y = y + gates[:, choice:choice + 1] * down
        return y.view_as(x)


def gpt2_parts(name, tensor):
    for part in ("c_fc", "c_proj"):
        if name.endswith(f"mlp.{part}"):
            at = name.removesuffix(part)
            return [(f"{at}experts.{part}.weight", tensor)]
    return [(name, tensor)]


def write_gpt2(path, job_model):
    config = transformers.GPT2Config(
        n_layer=job_model["num_hidden_layers"], n_embd=job_model["hidden_size"],
        n_head=job_model["num_attention_heads"],
        n_inner=job_model["intermediate_size"],
        vocab_size=job_model["vocab_size"],
        n_positions=job_model["max_position_embeddings"],
        activation_function="gelu_new", resid_pdrop=0, embd_pdrop=0,
        attn_pdrop=0, tie_word_embeddings=job_model["tie_word_embeddings"],
        bos_token_id=0, eos_token_id=0, attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config)
    gates = {}
    for number, block in enumerate(model.transformer.h):
        if (number + 1) % job_model["decoder_sparse_step"]:
            continue
        block.mlp = Gpt2Experts(
            job_model["hidden_size"], job_model["intermediate_size"],
            job_model["num_experts"], job_model["num_experts_per_tok"])
        gates[f"transformer.h.{number}.mlp.router"] = block.mlp.router
    model = model.double().train()
    golden.write_golden(path, model, job_model, gpt2_parts,
                        routers=Routers(gates, job_model["experts"],
                                        golden.SEQUENCE_LENGTH))


class SharedHead(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm = deepseek.DeepseekV3RMSNorm(config.hidden_size,
                                               config.rms_norm_eps)


class Module(deepseek.DeepseekV3DecoderLayer):
    """A layer, with the names of DeepSeek's own files."""

    def __init__(self, config, number):
        super().__init__(config, number)
        hidden = config.hidden_size
        self.enorm = deepseek.DeepseekV3RMSNorm(hidden, config.rms_norm_eps)
        self.hnorm = deepseek.DeepseekV3RMSNorm(hidden, config.rms_norm_eps)
        self.eh_proj = torch.nn.Linear(2 * hidden, hidden, bias=False)
        self.shared_head = SharedHead(config)


class Modules:
    """Behind the layers of a model, which does not call them."""

    def __init__(self, model, count, coefficient):
        self.model, self.coefficient = model, coefficient
        layers = model.model.layers
        self.modules = [Module(model.config, len(layers) + k).double().train()
                        for k in range(count)]
        layers.extend(self.modules)
        model.model.register_forward_hook(self.see, with_kwargs=True)

    def see(self, _, arguments, keywords, outputs):
        self.tokens = arguments[0] if arguments else keywords["input_ids"]
        self.hidden = outputs.last_hidden_state  # behind the norm

    def loss(self, targets):
        length = self.tokens.shape[1]
        at = torch.arange(length)
        turns = self.model.model.rotary_emb(self.hidden, at[None])
        mask = torch.zeros(length, length, dtype=torch.float64)
        mask = mask.masked_fill(at[None] > at[:, None], -math.inf)[None, None]
        total, hidden = 0, self.hidden
        for k, module in enumerate(self.modules, start=1):
            # Position i has token i + k, of those that there are.
            further = self.tokens[:, torch.clamp(at + k, max=length - 1)]
            both = torch.cat([
                module.enorm(self.model.model.embed_tokens(further)),
                module.hnorm(hidden)], -1)
            made = module(module.eh_proj(both), attention_mask=mask,
                          position_ids=at[None], position_embeddings=turns)
            made = made[0] if isinstance(made, tuple) else made
            hidden = module.shared_head.norm(made)
            logits = self.model.lm_head(hidden[:, :length - k])
            # The mean over all tokens of the batch, as the paper has it.
            total = total + torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), targets[:, k:].flatten(),
                reduction="sum") / targets.numel()
        return self.coefficient / len(self.modules) * total


def mixtral_gates(model):
    return {f"model.layers.{number}.block_sparse_moe.gate": layer.mlp.gate
            for number, layer in enumerate(model.model.layers)}


def parts(name, tensor):
    """Ours of a tensor of transformers'."""
    qwen = ("gate_proj", "up_proj", "down_proj", "mlp.")
    mixtral = ("w1", "w3", "w2", "block_sparse_moe.")
    gate, up, down, section = mixtral if parts.mixtral else qwen
    name = name.replace("mlp.", section) if "mlp.gate.weight" in name else name
    if ".experts." not in name:  # a shared one, too
        return [(name, tensor)]
    at = name[:name.index("mlp.experts.")] + section + "experts."
    if name.endswith("down_proj"):
        return [(f"{at}{down}.weight", tensor)]
    halves = tensor.chunk(2, dim=1)
    return [(f"{at}{gate}.weight", halves[0]), (f"{at}{up}.weight", halves[1])]


def routers_of(model, experts, is_deepseek):
    if not experts:
        return golden.NoRouters()
    if is_deepseek:
        return DeepseekRouters(model, experts, golden.SEQUENCE_LENGTH)
    return Routers(mixtral_gates(model), experts, golden.SEQUENCE_LENGTH)


def main():
    folder = os.path.dirname(os.path.abspath(sys.argv[0]))
    wanted = sys.argv[1:] or [*MODELS, *GPT2_MODELS]
    for name in wanted:
        if name in GPT2_MODELS:
            write_gpt2(os.path.join(folder, f"{name}.safetensors"),
                       GPT2_MODELS[name])
            continue
        model_class, config_class, job_model = MODELS[name]
        fields = dict(job_model)
        rope = dict(fields.pop("rope_scaling", None) or {"type": "default"})
        rope.update(rope_type=rope.pop("type"),
                    rope_theta=fields.pop("rope_theta"))
        experts = fields.pop("experts", None)
        modules = fields.pop("num_nextn_predict_layers", 0)
        coefficient = fields.pop("mtp_coefficient", 0)
        parts.mixtral = config_class is transformers.MixtralConfig
        if parts.mixtral:
            fields["num_local_experts"] = fields.pop("num_experts")
        is_deepseek = config_class is transformers.DeepseekV3Config
        if is_deepseek:
            fields["n_routed_experts"] = fields.pop("num_experts")
            fields["num_key_value_heads"] = fields["num_attention_heads"]
            fields["q_lora_rank"] = fields["q_lora_rank"] or None
        if config_class is transformers.OlmoeConfig:
            del fields["head_dim"]
        config = config_class(**fields, rope_parameters=rope,
                              attention_dropout=0, bos_token_id=0,
                              eos_token_id=0, pad_token_id=None,
                              attn_implementation="eager",
                              experts_implementation="eager")
        architecture = ("mixtral" if parts.mixtral else
                        "deepseek_v3" if is_deepseek else
                        name.removesuffix("_renormalised"))
        with float64():
            model = model_class(config).double().train()
            assert model.model.rotary_emb.inv_freq.dtype == torch.float64
            added = golden.nothing_added
            if modules > 0:
                added = Modules(model, modules, coefficient).loss
            golden.write_golden(
                os.path.join(folder, f"{name}.safetensors"), model,
                dict(job_model, architecture=architecture), parts,
                routers=routers_of(model, experts, is_deepseek), added=added)


if __name__ == "__main__":
    main()
