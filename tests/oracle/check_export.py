"""Loads a model directory with `transformers` and says what it makes of it.

    python check_export.py DIR --ids 15496 11 995
    python check_export.py DIR --ids-file ids.txt
    python check_export.py DIR --expected tests/oracle/hf/llama_tiny/expected.json

Prints the mean loss of predicting each id from those before it, and the ids
that follow greedily, in float32. Fails, with the names, where a weight is
missing, left over or of another shape, and with --expected (a file of
make_hf_fixtures.py) where loss or ids differ. README.md says how to install
what this needs.
"""

import argparse
import json
import sys

import torch
import transformers


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Checks a Hugging Face model directory.")
    parser.add_argument("directory")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--ids", type=int, nargs="+")
    source.add_argument("--ids-file", help="ids between spaces or commas")
    source.add_argument("--expected", help="expected.json of a fixture")
    parser.add_argument("--new-tokens", type=int, default=16)
    parser.add_argument("--tolerance", type=float, default=1e-4,
                        help="of the loss, relative (with --expected)")
    return parser.parse_args()


def read_ids(arguments):
    """The ids, and what is expected of them, if anything."""
    if arguments.ids:
        return arguments.ids, None
    with open(arguments.expected or arguments.ids_file) as file:
        text = file.read()
    if arguments.expected:
        expected = json.loads(text)
        return expected["ids"], expected
    return [int(word) for word in text.replace(",", " ").split()], None


def load(directory):
    """The model in float32, or an exit that names what does not fit."""
    model, found = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, output_loading_info=True,
        ignore_mismatched_sizes=True)  # so that it lists them all
    wrong = {kind: sorted(map(str, found[kind])) for kind in
             ("missing_keys", "unexpected_keys", "mismatched_keys")
             if found[kind]}
    for kind, names in wrong.items():
        print(f"{kind}: {', '.join(names)}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    return model.eval()


def main():
    arguments = parse_arguments()
    ids, expected = read_ids(arguments)
    model = load(arguments.directory)
    new_tokens = len(expected["greedy"]) if expected else arguments.new_tokens
    tokens = torch.tensor([ids])
    with torch.no_grad():
        logits = model(tokens).logits[0, :-1]
        loss = torch.nn.functional.cross_entropy(logits, tokens[0, 1:]).item()
        out = model.generate(tokens, do_sample=False, eos_token_id=None,
                             attention_mask=torch.ones_like(tokens),
                             max_new_tokens=new_tokens,
                             min_new_tokens=new_tokens)
    greedy = out[0, len(ids):].tolist()
    print("parameters:", sum(p.numel() for p in model.parameters()))
    print("loss:", loss)
    print("greedy:", *greedy)
    if not expected:
        return
    if abs(loss / expected["loss_float32"] - 1) > arguments.tolerance:
        sys.exit(f"the loss should be {expected['loss_float32']}")
    if greedy != expected["greedy"]:
        sys.exit(f"the ids should be {expected['greedy']}")


if __name__ == "__main__":
    main()
