"""Writes tests/oracle/hf: small models as `transformers` stores them.

Each directory is what save_pretrained writes, with a tokenizer, plus an
expected.json: ids, the mean loss of predicting each from those before it in
float32 and float64, and the ids that follow greedily. README.md says how to run
this.
"""

import json
import os
import shutil
import sys

import sentencepiece
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file

from float64 import float64

PROMPT_TOKENS = 24
NEW_TOKENS = 16
# How far ahead of the next best logit each greedy id is, at least.
MARGIN = 0.02
TEXT = ["The quick brown fox jumps over the lazy dog while a troupe of actors",
        "plays on, act after act; each of them knows its part, and no one reads",
        "the whole play but the one who wrote it. What they play is the plan."]

LLAMA = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=40,
             max_position_embeddings=64, rms_norm_eps=1e-5, bos_token_id=1,
             eos_token_id=2)


def randomise(model, seed):
    """Weights wide enough for logits that differ clearly."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(0.35 * noise)
            else:
                norm = name.endswith("weight")
                parameter.copy_(1 + 0.2 * noise if norm else 0.05 * noise)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(0.2 * torch.rand(buffer.shape,
                                              generator=generator))


def mean_loss(model, ids):
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1]
        return torch.nn.functional.cross_entropy(
            logits, torch.tensor(ids[1:])).item()


def continue_greedily(model, ids):
    ids, margins = list(ids), []
    for _ in range(NEW_TOKENS):
        with torch.no_grad():
            logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
        best = torch.topk(logits, 2)
        margins.append((best.values[0] - best.values[1]).item())
        ids.append(best.indices[0].item())
    return ids[-NEW_TOKENS:], min(margins)


def write_expected(folder, seed):
    """What the directory gives when read back, in float32 and float64."""

    def load(folder, dtype):
        # Grouped products of experts know no float64.
        return transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, experts_implementation="eager")

    model = load(folder, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, model.config.vocab_size, (PROMPT_TOKENS,),
                        generator=generator).tolist()
    greedy, margin = continue_greedily(model, ids)
    loss = mean_loss(model, ids)
    with float64():
        double = load(folder, dtype=torch.float64).eval()
        assert continue_greedily(double, ids)[0] == greedy
        double_loss = mean_loss(double, ids)
    if (margin < MARGIN or len(set(greedy)) < NEW_TOKENS // 2 or
            model.config.eos_token_id in greedy):
        return False
    with open(os.path.join(folder, "expected.json"), "w") as file:
        json.dump(dict(
            parameters=sum(p.numel() for p in model.parameters()), ids=ids,
            loss_float32=loss, loss_float64=double_loss, greedy=greedy,
            smallest_margin=round(margin, 4),
            transformers=transformers.__version__), file, indent=1)
        file.write("\n")
    print(folder, "loss", loss, double_loss, "margin", margin)
    return True


def write(folder, model, dtype, finish, **options):
    """Tries seeds until the greedy ids differ and none is a close call."""
    for seed in range(1000):
        randomise(model, seed)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        model.to(dtype).save_pretrained(folder, **options)
        model.float()
        finish(folder)
        if write_expected(folder, seed):
            break
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o644)


def byte_level_tokenizer(vocab_size):
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(TEXT, vocab_size, show_progress=False,
                                  special_tokens=["<|endoftext|>"])
    return tokenizer


def llama_tiny(folder):
    """As transformers 5 writes it: one file, rope_parameters, f32."""
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **LLAMA, vocab_size=272, head_dim=6,
        rope_parameters=dict(rope_type="default", rope_theta=5000.0)))

    write(folder, model, torch.float32, save_byte_level_tokenizer)


def llama_tied_bf16_sharded(folder):
    """As transformers 4 wrote Llama 3.2: shards, rope_scaling, bf16."""
    scaling = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0,
                   high_freq_factor=4.0, original_max_position_embeddings=16)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        **LLAMA, vocab_size=320, tie_word_embeddings=True,
        rope_parameters=dict(scaling, rope_theta=500000.0)))

    def finish(folder):
        path = os.path.join(folder, "config.json")
        with open(path) as file:
            config = json.load(file)
        del config["rope_parameters"], config["head_dim"]
        config.update(rope_theta=500000.0, rope_scaling=scaling,
                      torch_dtype=config.pop("dtype"),
                      transformers_version="4.46.0")
        with open(path, "w") as file:
            json.dump(config, file, indent=2)
            file.write("\n")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TEXT), vocab_size=320, model_type="bpe",
            model_prefix=os.path.join(folder, "tokenizer"), byte_fallback=True,
            normalization_rule_name="identity", minloglevel=2)
        os.remove(os.path.join(folder, "tokenizer.vocab"))

    write(folder, model, torch.bfloat16, finish, max_shard_size="12KB")


def save_byte_level_tokenizer(folder):
    byte_level_tokenizer(272).save(os.path.join(folder, "tokenizer.json"))


def mistral_tiny(folder):
    """With a window that is longer than the sequences."""
    model = transformers.MistralForCausalLM(transformers.MistralConfig(
        **LLAMA, vocab_size=272, head_dim=6, sliding_window=48,
        rope_parameters=dict(rope_type="default", rope_theta=5000.0)))
    write(folder, model, torch.float32, save_byte_level_tokenizer)


def qwen2_tiny(folder):
    """Tied, as the small ones are published."""
    model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        **LLAMA, vocab_size=272, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=5000.0)))
    write(folder, model, torch.float32, save_byte_level_tokenizer)


def qwen3_tiny(folder):
    """In bf16, as the small ones are published."""
    model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        **LLAMA, vocab_size=272, head_dim=6, tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=5000.0)))
    write(folder, model, torch.bfloat16, save_byte_level_tokenizer)


def mixtral_tiny(folder):
    """Each expert's weights are tensors of their own."""
    model = transformers.MixtralForCausalLM(transformers.MixtralConfig(
        **LLAMA, vocab_size=272, head_dim=6, num_local_experts=4,
        num_experts_per_tok=2,
        rope_parameters=dict(rope_type="default", rope_theta=5000.0)))
    write(folder, model, torch.float32, save_byte_level_tokenizer)


def qwen2_moe_tiny(folder):
    """With a shared expert, and a dense layer in front."""
    model = transformers.Qwen2MoeForCausalLM(transformers.Qwen2MoeConfig(
        **LLAMA, vocab_size=272, num_experts=5, num_experts_per_tok=2,
        moe_intermediate_size=12, shared_expert_intermediate_size=20,
        mlp_only_layers=[0],
        rope_parameters=dict(rope_type="default", rope_theta=5000.0)))
    write(folder, model, torch.float32, save_byte_level_tokenizer)


def qwen3_moe_tiny(folder):
    """As transformers 4 writes it, with a dense layer, in shards of bf16."""
    model = transformers.Qwen3MoeForCausalLM(transformers.Qwen3MoeConfig(
        **LLAMA, vocab_size=272, head_dim=6, num_experts=6,
        num_experts_per_tok=3, moe_intermediate_size=12, mlp_only_layers=[0],
        norm_topk_prob=True,
        rope_parameters=dict(rope_type="default", rope_theta=5000.0)))

    def finish(folder):
        path = os.path.join(folder, "config.json")
        with open(path) as file:
            config = json.load(file)
        config["num_experts"] = config.pop("num_local_experts", 6)
        del config["rope_parameters"]
        config.update(rope_theta=5000.0, rope_scaling=None,
                      torch_dtype=config.pop("dtype"),
                      transformers_version="4.57.0")
        with open(path, "w") as file:
            json.dump(config, file, indent=2)
            file.write("\n")
        save_byte_level_tokenizer(folder)

    write(folder, model, torch.bfloat16, finish, max_shard_size="24KB")


def olmoe_tiny(folder):
    """Norms over all heads of queries, and of keys."""
    model = transformers.OlmoeForCausalLM(transformers.OlmoeConfig(
        **LLAMA, vocab_size=272, num_experts=6, num_experts_per_tok=2,
        rope_parameters=dict(rope_type="default", rope_theta=5000.0)))
    write(folder, model, torch.float32, save_byte_level_tokenizer)


def add_module(tensors, layer):
    """One that predicts a further token, as DeepSeek's files have it: behind
    the last layer, with copies of the tables that it shares."""
    generator = torch.Generator().manual_seed(11)
    at, before = f"model.layers.{layer}.", f"model.layers.{layer - 1}."
    made = {at + name.removeprefix(before): tensor
            for name, tensor in tensors.items() if name.startswith(before)}
    norm = tensors["model.norm.weight"]
    for name in ("enorm", "hnorm", "shared_head.norm"):
        made[f"{at}{name}.weight"] = norm
    made[at + "eh_proj.weight"] = torch.cat(
        [tensors[before + "self_attn.o_proj.weight"].new_zeros(
            len(norm), len(norm))] * 2, dim=1)
    for name, tensor in made.items():
        noise = torch.randn(tensor.shape, generator=generator)
        made[name] = (tensor.float() + 0.1 * noise).to(tensor.dtype)
    made[at + "embed_tokens.weight"] = tensors["model.embed_tokens.weight"]
    made[at + "shared_head.head.weight"] = tensors["lm_head.weight"]
    tensors.update({name: tensor.clone() for name, tensor in made.items()})


def deepseek_v3_tiny(folder):
    """As it is published, in bf16: the config of transformers 4 and of the
    code beside it, and a layer behind the last one that predicts tokens."""
    fields = dict(LLAMA, num_key_value_heads=4)
    scaling = dict(type="yarn", factor=4.0, beta_fast=2.0, beta_slow=0.25,
                   mscale=1.0, mscale_all_dim=1.0,
                   original_max_position_embeddings=16)
    model = transformers.DeepseekV3ForCausalLM(transformers.DeepseekV3Config(
        **fields, vocab_size=272, q_lora_rank=12, kv_lora_rank=10,
        qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5,
        n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2,
        moe_intermediate_size=12, n_shared_experts=1, first_k_dense_replace=1,
        rope_parameters=dict(scaling, rope_theta=5000.0)))

    def finish(folder):
        path = os.path.join(folder, "model.safetensors")
        tensors = load_file(path)
        add_module(tensors, layer=2)
        save_file(tensors, path, metadata={"format": "pt"})
        path = os.path.join(folder, "config.json")
        with open(path) as file:
            config = json.load(file)
        for name in ("rope_parameters", "num_mtp_layers", "num_local_experts",
                     "head_dim", "qk_head_dim"):
            config.pop(name, None)
        config.update(rope_theta=5000.0, rope_scaling=scaling,
                      num_nextn_predict_layers=1, moe_layer_freq=1,
                      n_routed_experts=8, scoring_func="sigmoid",
                      topk_method="noaux_tc", aux_loss_alpha=0.001,
                      seq_aux=True, torch_dtype=config.pop("dtype"),
                      transformers_version="4.33.1")
        with open(path, "w") as file:
            json.dump(config, file, indent=2)
            file.write("\n")
        save_byte_level_tokenizer(folder)

    write(folder, model, torch.bfloat16, finish)


def gpt_neox_tiny(folder):
    """As Pythia is published: f16, and the names of transformers 4."""
    model = transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=40, max_position_embeddings=64, vocab_size=272,
        bos_token_id=0, eos_token_id=0,
        rope_parameters=dict(rope_type="default", rope_theta=5000.0,
                             partial_rotary_factor=0.5)))

    def finish(folder):
        path = os.path.join(folder, "config.json")
        with open(path) as file:
            config = json.load(file)
        del config["rope_parameters"]
        config.update(rotary_emb_base=5000, rotary_pct=0.5,
                      torch_dtype=config.pop("dtype"),
                      transformers_version="4.24.0")
        with open(path, "w") as file:
            json.dump(config, file, indent=2)
            file.write("\n")
        save_byte_level_tokenizer(folder)

    write(folder, model, torch.float16, finish)


def gpt2(folder, dtype, finish):
    write(folder, transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, n_embd=16, n_head=4, vocab_size=272, n_positions=64,
        bos_token_id=0, eos_token_id=0)), dtype, finish)


def gpt2_tiny(folder):
    """As transformers 5 writes it, f16."""
    gpt2(folder, torch.float16, save_byte_level_tokenizer)


def gpt2_bare(folder):
    """As the first GPT-2 is still published: no prefix, attention masks."""

    def finish(folder):
        path = os.path.join(folder, "model.safetensors")
        tensors = {name.removeprefix("transformer."): tensor
                   for name, tensor in load_file(path).items()}
        for layer in range(2):
            tensors[f"h.{layer}.attn.bias"] = torch.ones(
                64, 64, dtype=torch.uint8).tril()[None, None].float()
        save_file(tensors, path, metadata={"format": "pt"})
        byte_level_tokenizer(272).save_model(folder)

    gpt2(folder, torch.float32, finish)


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "hf")
    for make in (llama_tiny, llama_tied_bf16_sharded, mistral_tiny, qwen2_tiny,
                 qwen3_tiny, mixtral_tiny, qwen2_moe_tiny, qwen3_moe_tiny,
                 olmoe_tiny, deepseek_v3_tiny, gpt2_tiny, gpt2_bare, gpt_neox_tiny):
        # All, or those that are named.
        if not sys.argv[1:] or make.__name__ in sys.argv[1:]:
            make(os.path.join(folder, make.__name__))


if __name__ == "__main__":
    main()
