#!/usr/bin/env bash
# Runs every command of docs/train_on_your_text.md, in the order of the page, with
# the job that is in it, on a small corpus.
set -euo pipefail

root=$PWD
export HOME=${TEST_TMPDIR:?}
export XDG_CACHE_HOME=$HOME/cache
export TROUPE_DIR=$HOME/cluster
mkdir -p "$HOME/work/corpus/sub" && cd "$HOME/work"

python3 - <<'PYTHON'
import gzip, json
words = "the quick brown fox jumps over a lazy dog while nine small birds sing".split()
def text(i):
    return " ".join(words[(i * k * k + k) % len(words)] for k in range(40)) + "."
with gzip.open("corpus/a.jsonl.gz", "wt") as file:
    for i in range(300):
        file.write(json.dumps({"id": i, "text": text(i)}) + "\n")
with open("corpus/sub/b.txt", "w") as file:
    file.writelines(text(7 * i) + "\n" for i in range(100))
with open("more.txt", "w") as file:
    file.writelines(text(11 * i) + "\n" for i in range(200))
PYTHON
echo "not a text" > corpus/notes.md

# Commands are the lines of the page that begin with four spaces and `troupe`;
# the job is the lines behind "`job.yaml`:".
python3 - "$root/docs/train_on_your_text.md" <<'PYTHON'
import re, sys
page = open(sys.argv[1]).read()
job = re.search(r"^`job\.yaml`:\n\n((?:    .*\n)+)", page, re.M)[1]
open("job.yaml", "w").write(re.sub("^    ", "", job, flags=re.M))
commands = re.findall(r"^    (troupe .*)$", page, re.M)
assert len(commands) >= 9, commands
open("commands", "w").write("\n".join(commands) + "\n")
PYTHON

troupe() { "$root/clients/cli/troupe" "$@"; }
down() { troupe down > /dev/null 2>&1 || true; }
trap down EXIT
"$root/tests/cluster/calibrate_briefly"
while read -r command; do
  echo "\$ $command"
  eval "$command" < /dev/null || { echo "failed: $command" >&2; exit 1; }
done < commands

# What came out.
test ! -e text.tokens.partial
cmp text.tokens.model exported/tokenizer.json
test -s exported/model.safetensors
