"""Makes tests/oracle/tokenizers/choices.json: which tokens of a prompt with a
choice are the choice's, as lm-evaluation-harness has it.

    python make_choice_goldens.py

encode_pair is TemplateLM._encode_pair and the empty context of
TemplateLM.loglikelihood (lm_eval/api/model.py, version 0.4.9; a continuation
that has brought its context as in later versions), over the
`tokenizers` package and the tokenizers of make_tokenizer_goldens.py. README.md
says how to install what this needs.
"""

import json
import os

from tokenizers import Tokenizer

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizers")

PAIRS = [
    ("The capital of France is", " Paris"),
    ("The capital of France is ", "Paris"),
    ("The capital of France is  \n", "Paris"),
    ("All human beings are born", " free"),
    ("All human bei", "ngs are born"),
    ("2 + 2 =", " 4"),
    ("def f(x):\n", "    return x ** 2"),
    ("人人生而", "自由"),
    ("They", "'re endowed"),
    ("\u3000Q:\u00a0", "A"),
    ("Al", "l"),
    ("", "All human beings"),
    ("", "<|endoftext|>All human"),
    ("", "<s>All human"),
    ("", "<|begin_of_text|>All human"),
    ("", "<s>"),
    ("  ", "free"),
    ("a", "\u0301"),
]


def encode_pair(encode, prefix, context, continuation):
    if context == "":
        after = encode(continuation, bos=False)
        if after[:1] == prefix:  # the continuation has brought its context
            return after[:1], after[1:]
        return prefix, after
    spaces = len(context) - len(context.rstrip())
    if spaces > 0:
        continuation = context[-spaces:] + continuation
        context = context[:-spaces]
    whole = encode(context + continuation)
    before = encode(context)
    if not before:  # lm-evaluation-harness would predict the first token of nothing
        before, whole = prefix, prefix + whole
    return before, whole[len(before):]


def main():
    cases = []
    for name, bos, prefix in [
        ("gpt2", [], [0]),
        ("llama2", [1], [1]),
        ("llama2", [], [1]),
        ("llama3", [700], [700]),
    ]:
        tokenizer = Tokenizer.from_file(os.path.join(HERE, name + ".json"))

        def encode(text, bos=bos):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            return (bos or []) + ids

        for prompt, choice in PAIRS:
            before, after = encode_pair(encode, prefix, prompt, choice)
            cases.append({
                "tokenizer": name, "bos": bos, "prefix": prefix, "prompt": prompt,
                "choice": choice, "context": before, "continuation": after,
            })
    with open(os.path.join(HERE, "choices.json"), "w", encoding="utf-8") as out:
        lines = ",\n".join(json.dumps(case) for case in cases)
        out.write('{"cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
