"""A model whose state is ten times the device's budget and three times the
host's trains from a disk, by a worker that the kernel, too, allows a quarter of
what the job needs without tiers (docs/memory.md, "Larger than memory").

    bazel build //clients/cli:troupe //scheduler:troupe-scheduler //worker:troupe-worker
    python3 tests/cluster/larger_than_memory.py [--bin bazel-bin] [--disk /var/tmp]

Makes a cgroup, of version 1 or 2, so it needs root; some GB of the disk, two or
three minutes, nothing but Python. Prints what was predicted and measured, and
ends with 0 where the job succeeded, nothing was killed, and the most memory that
was resident is within 15 % of the prediction.
"""

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

MODEL = """
name: larger-than-memory
model: {architecture: gpt2, num_hidden_layers: 48, hidden_size: 512,
        num_attention_heads: 8, vocab_size: 256, max_position_embeddings: 128}
data: {tokens: text.tokens}
training: {steps: 8, global_batch_size: 4, micro_batch_size: 1, precision: bf16,
           gradient_precision: parameters}
optimizer: {lr: 1.0e-4}
"""
TIERS = """memory: {optimizer: nvme, parameters: nvme, gradients: host,
         activations: nvme}
"""
BUDGETS = {"--device-memory": "230MiB", "--host-memory": "770MiB",
           "--nvme-size": "4GiB"}
WITHIN = 0.15  # of the prediction
MIB = 2**20


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", default="bazel-bin",
                        help="the folder of programs")
    parser.add_argument("--disk", default="/var/tmp",
                        help="a folder on a disk (O_DIRECT)")
    return parser.parse_args()


class Failure(Exception):
    """What a person should read."""


class Cgroup:
    """Limits the memory of what joins it; removed on exit."""

    def __init__(self, limit):
        first = "/sys/fs/cgroup/memory"  # version 1
        self.old = os.path.isdir(first)
        self.path = os.path.join(first if self.old else "/sys/fs/cgroup",
                                 f"troupe-{os.getpid()}")
        self.limit = limit

    def __enter__(self):
        try:
            os.mkdir(self.path)
            self.write("memory.limit_in_bytes" if self.old else "memory.max",
                       self.limit)
        except OSError as error:
            raise Failure(f"no cgroup can be made: {error}; this needs root, "
                          "and the memory controller") from None
        return self

    def __exit__(self, *_):
        os.rmdir(self.path)

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w", encoding="ascii") as file:
            file.write(str(value))

    def read(self, name):
        with open(os.path.join(self.path, name), encoding="ascii") as file:
            return file.read()

    def join(self):
        """Of the calling process."""
        self.write("cgroup.procs", os.getpid())

    def peak(self):
        return int(self.read("memory.max_usage_in_bytes" if self.old
                             else "memory.peak"))

    def kills(self):
        text = self.read("memory.oom_control" if self.old else "memory.events")
        return int(dict(line.split() for line in text.splitlines())
                   .get("oom_kill", 0))


class Cluster:
    """A scheduler, and a worker in the cgroup; ended on exit."""

    def __init__(self, programs, folder, cgroup):
        self.programs, self.folder, self.cgroup = programs, folder, cgroup
        self.processes = []

    def __enter__(self):
        state = os.path.join(self.folder, "cluster")
        self.start("troupe-scheduler", "--insecure", "--state", state)
        endpoints = os.path.join(state, "endpoints.json")
        self.wait_for(lambda: os.path.exists(endpoints))
        with open(endpoints, encoding="utf-8") as file:
            address = json.load(file)["grpc"]
        self.start("troupe-worker", "--insecure", "--scheduler", address,
                   "--name", "worker-0", "--nvme",
                   os.path.join(self.folder, "nvme"), *flags(BUDGETS),
                   preexec_fn=self.cgroup.join)
        self.wait_for(lambda: len(json.loads(self.ask(
            "workers", "--json"))["workers"]) == 1)
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            process.wait()

    def start(self, program, *words, **how):
        with open(os.path.join(self.folder, program + ".log"), "wb") as log:
            self.processes.append(subprocess.Popen(
                [self.programs[program], *words], stdout=log, stderr=log,
                **how))

    def wait_for(self, done):
        until = time.monotonic() + 120  # a worker may calibrate first
        while not done():
            if (time.monotonic() > until or
                    any(p.poll() is not None for p in self.processes)):
                raise Failure("the daemons did not start")
            time.sleep(0.1)

    def ask(self, *words):
        return ask(self.programs, *words, "--dir",
                   os.path.join(self.folder, "cluster"))


def flags(named):
    return [word for pair in named.items() for word in pair]


def ask(programs, *words):
    done = subprocess.run([programs["troupe"], *words], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"troupe {words[0]}: {done.stdout[-300:]} "
                      f"{done.stderr[-300:]}")
    return done.stdout


def predict(programs, job, *words):
    return json.loads(ask(programs, "plan", job, "--json", *words))[
        "prediction"]


def make_jobs(programs, folder):
    """One that keeps all in memory, and one on tiers."""
    text = os.path.join(folder, "text.txt")
    with open(text, "w", encoding="utf-8") as file:
        for page in sorted(glob.glob("docs/*.md")):
            with open(page, encoding="utf-8") as read:
                file.write(read.read())
    ask(programs, "data", "prepare", text, "--tokenizer", "bytes", "--out",
        os.path.join(folder, "text.tokens"))
    jobs = []
    for name, memory in (("whole", ""), ("tiers", TIERS)):
        jobs.append(os.path.join(folder, name + ".yaml"))
        with open(jobs[-1], "w", encoding="utf-8") as file:
            file.write(MODEL + memory)
    os.mkdir(os.path.join(folder, "nvme"))
    return jobs


def run(programs, folder):
    whole, tiers = make_jobs(programs, folder)
    needs = predict(programs, whole)["ranks"][0]["resident_bytes"]
    plan = predict(programs, tiers, "--nvme", os.path.join(folder, "nvme"),
                   *flags(BUDGETS))
    predicted = plan["ranks"][0]["resident_bytes"]
    print(f"needs {needs // MIB} MiB without tiers, may have "
          f"{needs // 4 // MIB} of them", flush=True)
    with Cgroup(needs // 4) as cgroup:
        with Cluster(programs, folder, cgroup) as cluster:
            cluster.ask("submit", tiers, "--watch")
            job = json.loads(cluster.ask("describe", "latest", "--json"))
        peak, kills = cgroup.peak(), cgroup.kills()
    steps = job["steps"]
    resident = max(step["memory_bytes"] for step in steps)
    moved = sum(tier["bytes_out"] + tier["bytes_in"]
                for tier in steps[-1]["tiers"] if tier["tier"] == "NVME")
    seconds = sorted(step["step_seconds"] for step in steps)[len(steps) // 2]
    off = resident / predicted - 1
    print(f"resident at most {resident // MIB} MiB, predicted "
          f"{predicted // MIB}: {100 * off:+.1f} %; by the cgroup "
          f"{peak // MIB} MiB, {kills} killed")
    print(f"step {seconds:.2f} s, predicted {plan['step_seconds']:.2f}; "
          f"{moved / 1e9:.2f} GB to and from the disk in one")
    if job["state"] != "SUCCEEDED" or kills > 0 or abs(off) > WITHIN:
        raise Failure(f"the job {job['state'].lower()}, {job['reason']}")


def main():
    arguments = parse_arguments()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    places = {"troupe": "clients/cli", "troupe-scheduler": "scheduler",
              "troupe-worker": "worker"}
    programs = {name: os.path.abspath(os.path.join(arguments.bin, place, name))
                for name, place in places.items()}
    folder = tempfile.mkdtemp(prefix="troupe-larger.", dir=arguments.disk)
    try:
        run(programs, folder)
    except (Failure, OSError, ValueError, LookupError) as failure:
        print(f"FAILED: {failure!s}; logs are in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
