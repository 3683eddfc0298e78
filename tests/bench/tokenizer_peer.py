"""The `tokenizers` library on one thread, for tokenizer_bench.

    python tokenizer_peer.py TOKENIZER.json TEXT IDS

Encodes the file TEXT (bytes that are not UTF-8 become U+FFFD) as one text, without
special tokens, writes the ids to IDS, 4 bytes each, and prints the seconds of the
faster of two runs.
"""

import array
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers  # noqa: E402


def main(tokenizer_path, text_path, ids_path):
    with open(text_path, "rb") as file:
        text = file.read().decode(errors="replace")
    seconds = []
    for _ in range(2):
        # A new one, with an empty cache.
        tokenizer = tokenizers.Tokenizer.from_file(tokenizer_path)
        tokenizer.no_truncation()
        start = time.perf_counter()
        encoding = tokenizer.encode_batch_fast([text], add_special_tokens=False)[0]
        seconds.append(time.perf_counter() - start)
    with open(ids_path, "wb") as file:
        array.array("i", encoding.ids).tofile(file)
    print(min(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
