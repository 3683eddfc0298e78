#!/usr/bin/env bash
# Runs every command of docs/fine_tune.md, in the order of the page, with the jobs
# that are in it, on a small model of transformers'.
set -euo pipefail

root=$PWD
export HOME=${TEST_TMPDIR:?}
export XDG_CACHE_HOME=$HOME/cache
export TROUPE_DIR=$HOME/cluster
mkdir -p "$HOME/work" && cd "$HOME/work"
cp -rL "$root/tests/oracle/hf/llama_tiny" model
chmod -R u+w model

python3 - "$root/docs/fine_tune.md" <<'PYTHON'
import json, re, sys
words = "the quick brown fox jumps over a lazy dog while nine small birds sing".split()
with open("texts.jsonl", "w") as file:
    for i in range(60):
        text = " ".join(words[(i * k * k + k) % len(words)] for k in range(40))
        file.write(json.dumps({"text": text + "."}) + "\n")

# Answers of very different lengths.
with open("chats.jsonl", "w") as file:
    for i in range(40):
        question = {"role": "user", "content": words[i % 14]}
        answer = " ".join(words[(i + k) % 14] for k in range(1 + i % 3 * i % 7))
        messages = [question, {"role": "assistant", "content": answer}]
        if i % 3 == 0:
            record = {"prompt": words[i % 14] + ":", "completion": " " + answer}
        elif i % 3 == 1:
            record = {"messages": messages}
        else:
            record = {"prompt": messages[:1], "completion": messages[1:]}
        file.write(json.dumps(record) + "\n")
json.dump([{"role": "user", "content": "fox"}], open("question.json", "w"))
open("model/chat_template.jinja", "w").write(
    "{% for m in messages %}{{ '<' + m.role + '>' + m.content + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}")

# Commands are the lines of the page that begin with four spaces and `troupe`;
# a job is the lines behind its name in backquotes and a colon.
page = open(sys.argv[1]).read()
jobs = re.findall(r"`(\w+\.yaml)`:\n\n((?:    .*\n)+)", page)
assert [name for name, _ in jobs] == ["tune.yaml", "more.yaml",
                                      "chat.yaml"], jobs
for name, job in jobs:
    open(name, "w").write(re.sub("^    ", "", job, flags=re.M))
commands = re.findall(r"^    (troupe .*)$", page, re.M)
assert len(commands) >= 14, commands
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
python3 - <<'PYTHON'
import json, os, struct

def tensors(path):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return {name: tensor["shape"] for name, tensor in header.items()}

adapter = tensors("adapter/adapter_model.safetensors")
layers = [f"model.layers.{i}.self_attn.{m}_proj" for i in (0, 1) for m in "qv"]
assert sorted(adapter) == sorted(
    f"base_model.model.{layer}.lora_{m}.weight" for layer in layers
    for m in "AB"), adapter
config = json.load(open("adapter/adapter_config.json"))
assert config["r"] == 8 and config["lora_alpha"] == 16, config
assert config["target_modules"] == ["q_proj", "v_proj"], config
assert config["base_model_name_or_path"] == os.path.abspath("model"), config
assert tensors("merged/model.safetensors") == tensors("model/model.safetensors")
assert open("merged/tokenizer.json").read() == open("model/tokenizer.json").read()
# What was merged is not what was there.
assert (open("merged/model.safetensors", "rb").read()
        != open("model/model.safetensors", "rb").read())
PYTHON
