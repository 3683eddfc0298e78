"""Compares the tokenizer of an exported directory with the one it came from.

    python check_tokenizer.py DIR ... [--text FILE ...]

Each DIR is what `troupe export` made of a model whose tokens a SentencePiece model
or `bytes` made. Texts in several scripts, odd spaces, what control pieces
spell, and the files that are given, are encoded by AutoTokenizer and by the
SentencePiece library (DIR/tokenizer.model), or as bytes where there is no such
file. Fails with the first texts of which the ids differ. README.md says how to
install what this needs.
"""

import argparse
import os
import random
import sys

import sentencepiece
import transformers

PARTS = [
    "The quick brown fox jumps over the lazy dog.", "re-reads 1,234 pages; 37%",
    "Der Märchenkönig fährt über die Straße", "東京の人々は日本語を話します。",
    "Привет, мир! Как дела?", "مرحبا بالعالم", "नमस्ते दुनिया", "안녕하세요 세계",
    "def f(x):\n    return x + 1\n", "e\u0301 \u212b \u2167 \ufb01 \uff21\uff32",
    "\U0001f98a!\U0001f98a", "▁", "<s>", "</s>", "<unk>", "<pad>", "<0x0A>",
    " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "zq", "999",
]


def texts(files):
    yield from ["", " ", "   ", "a", "\n", "  a ", "x\ny\n\n"] + PARTS
    shuffled = random.Random(7)
    for _ in range(500):
        yield "".join(shuffled.choices(PARTS, k=shuffled.randrange(1, 9)))
    for path in files:
        with open(path, encoding="utf-8", newline="") as file:
            yield file.read()


def differences(directory, arguments):
    """How many texts have other ids; the first few are printed."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    path = os.path.join(directory, "tokenizer.model")
    if os.path.exists(path):
        encode = sentencepiece.SentencePieceProcessor(model_file=path).encode
    else:
        encode = lambda text: list(text.encode())  # noqa: E731
    count = wrong = 0
    for text in texts(arguments.text):
        if any(skipped in text for skipped in arguments.skip):
            continue
        count += 1
        want, got = encode(text), tokenizer(text)["input_ids"]
        if want == got:
            continue
        wrong += 1
        if wrong <= 5:
            at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b),
                      min(len(want), len(got)))
            print(f"{text[:60]!r}: from id {at} on {want[at:at + 8]}, in "
                  f"transformers {got[at:at + 8]}", file=sys.stderr)
    print(f"{directory}: transformers {transformers.__version__}, "
          f"{type(tokenizer).__name__}: {count} texts, {wrong} differ")
    return wrong


def main():
    parser = argparse.ArgumentParser(description="Compares tokenizers.")
    parser.add_argument("directories", nargs="+", metavar="DIR")
    parser.add_argument("--text", action="append", default=[], metavar="FILE")
    parser.add_argument("--skip", action="append", default=[], metavar="TEXT",
                        help="leave out texts that contain this")
    arguments = parser.parse_args()
    wrong = [differences(directory, arguments)
             for directory in arguments.directories]
    sys.exit(1 if any(wrong) else 0)


if __name__ == "__main__":
    main()
