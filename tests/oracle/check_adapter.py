"""Loads an exported adapter with PEFT, and compares it with the merged model.

    python check_adapter.py --base model --adapter adapter --merged merged

Prints the losses of some ids with the base model, with the adapter beside it and
with the merged model; fails where the latter two differ.
"""

import argparse
import sys

import peft
import torch
import transformers


def main():
    parser = argparse.ArgumentParser(description="Checks an exported adapter.")
    for name in ("base", "adapter", "merged"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--tolerance", type=float, default=1e-5,
                        help="of the loss, relative")
    arguments = parser.parse_args()

    def load(path):
        return transformers.AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32).eval()

    base = load(arguments.base)
    ids = torch.tensor([[(7 * i * i + 3 * i + 1) % base.config.vocab_size
                         for i in range(24)]])

    def loss(model):
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, :-1]
        return torch.nn.functional.cross_entropy(logits, ids[0, 1:]).item()

    alone = loss(base)
    model = peft.PeftModel.from_pretrained(base, arguments.adapter)
    adapted, merged = loss(model), loss(load(arguments.merged))
    print(f"base {alone:.6f}, with the adapter {adapted:.6f}, "
          f"merged {merged:.6f}")
    if abs(adapted / merged - 1) > arguments.tolerance or adapted == alone:
        sys.exit("the adapter beside the model is not the merged model")


if __name__ == "__main__":
    main()
