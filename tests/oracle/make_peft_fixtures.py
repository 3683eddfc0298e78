"""Writes tests/oracle/peft: adapters as PEFT stores them.

For each model of tests/oracle/hf a directory that PeftModel.save_pretrained
writes: adapters of all linear layers but those of experts and routers, with
random A and B. Each has an expected.json, too: the mean loss of the model's own
expected.json with the adapters, in float64. README.md says how to run this.
"""

import json
import os

import peft
import torch
import transformers
from transformers.pytorch_utils import Conv1D

from float64 import float64

HERE = os.path.dirname(os.path.abspath(__file__))
RANK = 2
ALPHA = 3
MODELS = ["gpt2_tiny", "gpt_neox_tiny", "llama_tiny", "mistral_tiny",
          "qwen2_tiny", "qwen3_tiny", "mixtral_tiny", "qwen2_moe_tiny",
          "qwen3_moe_tiny", "olmoe_tiny", "deepseek_v3_tiny"]
# The projection onto the vocabulary, and what weighs a shared expert as a router
# weighs the others.
LEFT_OUT = ("lm_head", "embed_out", "shared_expert_gate")
# Of these models PEFT takes any layer of such a name for one of experts.
EXPERTS_OF = ("qwen3_moe", "olmoe", "deepseek_v3")
EXPERTS = ("gate_proj", "up_proj", "down_proj")


def linear_layers(model):
    """Experts are no modules in transformers 5, nor are routers."""
    left_out = LEFT_OUT
    if model.config.model_type in EXPERTS_OF:
        left_out += EXPERTS
    return [name for name, module in model.named_modules()
            if isinstance(module, (torch.nn.Linear, Conv1D))
            and not name.endswith(left_out)]


def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.copy_(0.3 * noise)


def mean_loss(model, ids):
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0, :-1]
        return torch.nn.functional.cross_entropy(
            logits, torch.tensor(ids[1:])).item()


def main():
    for seed, name in enumerate(MODELS):
        base = os.path.join(HERE, "hf", name)
        to = os.path.join(HERE, "peft", name)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            base, dtype=torch.float32, experts_implementation="eager")
        conv = any(isinstance(m, Conv1D) for m in model.modules())
        model = peft.get_peft_model(model, peft.LoraConfig(
            r=RANK, lora_alpha=ALPHA, target_modules=linear_layers(model),
            fan_in_fan_out=conv, use_rslora=name == "qwen3_tiny",
            task_type="CAUSAL_LM"))
        randomise(model, seed)
        # Not the path on the machine that wrote it.
        model.peft_config["default"].base_model_name_or_path = name
        model.save_pretrained(to)
        os.remove(os.path.join(to, "README.md"))
        with open(os.path.join(base, "expected.json")) as file:
            ids = json.load(file)["ids"]
        with float64():
            loss = mean_loss(model.double().eval(), ids)
        with open(os.path.join(to, "expected.json"), "w") as file:
            json.dump({"loss_float64": loss, "peft": peft.__version__,
                       "transformers": transformers.__version__}, file,
                      indent=1)
            file.write("\n")
        print(name, loss)


if __name__ == "__main__":
    main()
