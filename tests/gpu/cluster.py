"""Whether workers that share a GPU train the model that one worker trains on it,
and that a CPU trains: real daemons, the losses of 20 steps.

    python3 cluster.py --bin bin --work /tmp/cluster [--device cuda:0]

Starts a scheduler and workers four times over: one worker on the GPU, several on
it (their collectives go through the host: NCCL joins no two ranks of one GPU of a
host), as many that tell NCCL they are of different hosts and so are joined by it,
over sockets; one on the CPU. Each cluster trains the same small GPT-2 on tokens
made here. In f32 the losses of each step may differ by 1e-4, in bf16 by 2e-2, in
fp16 by 2e-3. Then one of the workers that NCCL joins is killed in a job that
recovers: the losses must be those of a quiet run, to the bit.
With --device cpu it checks itself where there is no GPU. Needs nothing but Python.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time

STEPS = 20
STEPS_WITH_A_KILL = 100  # few are over when a kill arrives
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
LARGEST = {"f32": 1e-4, "bf16": 2e-2, "fp16": 2e-3}
JOB = """
name: losses
model: {architecture: gpt2, num_hidden_layers: 4, hidden_size: 128,
        num_attention_heads: 4, vocab_size: 256, max_position_embeddings: 128}
data: {tokens: words.tokens}
training: {steps: %d, global_batch_size: 16, micro_batch_size: 2,
           sequence_length: 128, dropout: 0.1, seed: 7}
optimizer: {name: adamw, lr: 1.0e-3}
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", required=True, help="the folder of programs")
    parser.add_argument("--work", required=True, help="made anew")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--rows", metavar="FILE",
                        help="also append the table's rows to FILE")
    return parser.parse_args()


class Failure(Exception):
    """What a person should read."""


class Cluster:
    """A scheduler and workers on one device, ended on exit. Where they are apart,
    NCCL takes each for one of another host."""

    def __init__(self, arguments, name, device, workers, apart, deadline):
        self.bin, self.deadline = arguments.bin, deadline
        self.folder = os.path.join(arguments.work, name)
        self.processes = {}
        self.device, self.workers, self.apart = device, workers, apart

    def __enter__(self):
        os.makedirs(self.folder)
        try:
            self.start("scheduler", "troupe-scheduler", "--insecure",
                       "--state", self.folder)
            endpoints = os.path.join(self.folder, "endpoints.json")
            self.wait_for("the scheduler", lambda: os.path.exists(endpoints))
            with open(endpoints, encoding="utf-8") as file:
                address = json.load(file)["grpc"]
            memory = (["--device-memory", "1GiB", "--host-memory", "256MiB"]
                      if self.device != "cpu" else [])
            threads = max(1, os.cpu_count() // self.workers)
            for i in range(self.workers):
                self.start(f"worker-{i}", "troupe-worker", "--insecure",
                           "--scheduler", address, "--name", f"worker-{i}", "--device",
                           self.device, "--threads", str(threads), *memory)
            self.wait_for("the workers", lambda: len(json.loads(
                self.ask("workers", "--json"))["workers"]) == self.workers)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        processes = list(reversed(self.processes.values()))
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, name, program, *flags):
        environment = dict(os.environ)
        if self.apart:
            environment["NCCL_HOSTID"] = name
        with open(os.path.join(self.folder, name + ".log"), "wb") as log:
            self.processes[name] = subprocess.Popen(
                [os.path.join(self.bin, program), *flags], stdout=log,
                stderr=log, env=environment)

    def wait_for(self, what, done):
        while not done():
            if any(p.poll() is not None for p in self.processes.values()):
                raise Failure(f"{what}: a process ended, see {self.folder}")
            if time.monotonic() > self.deadline:
                raise Failure(f"{what}: no time left, see {self.folder}")
            time.sleep(0.1)

    def ask(self, *words):
        left = max(1, self.deadline - time.monotonic())
        try:
            done = subprocess.run(
                [os.path.join(self.bin, "troupe"), *words, "--dir",
                 self.folder], capture_output=True, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            raise Failure(f"troupe {words[0]}: no time left, see "
                          f"{self.folder}") from None
        if done.returncode != 0:
            raise Failure(f"troupe {words[0]}: {done.stdout[-300:]} "
                          f"{done.stderr[-300:]}, see {self.folder}")
        return done.stdout

    def submit(self, job, ranks, watch, *settings):
        words = [word for setting in (f"parallelism.data={ranks}", *settings)
                 for word in ("--set", setting)]
        self.ask("submit", job, *(["--watch"] if watch else []), *words)

    def describe(self):
        return json.loads(self.ask("describe", "latest", "--json"))

    def losses(self, job, ranks, *settings):
        self.submit(job, ranks, True, *settings)
        described = self.describe()
        self.check_carriers(described["plan"])
        return losses_of(described)

    def check_carriers(self, plan):
        """That it is NCCL, or the host's memory, as the cluster is meant."""
        carriers = [carrier for group in plan["groups"]
                    for carrier in group["carriers"]
                    if not group["name"].startswith("copies")]
        if self.device != "cpu" and not all(
                carrier["backend"] == "nccl" if self.apart else
                carrier["staged"] for carrier in carriers):
            raise Failure(f"groups are carried by {carriers}, see "
                          f"{self.folder}")

    def kill_in(self, job, ranks, *settings):
        """The job, one of whose workers is killed when it has done some steps."""
        self.submit(job, ranks, False, *settings)
        described = self.wait_for_job("some steps", lambda described: len(
            described["steps"]) >= STEPS // 2)
        self.processes.pop(described["workers"][ranks // 2]).kill()
        return self.wait_for_job("its end after a kill", lambda _: False)

    def wait_for_job(self, what, done):
        """The job, then or when it has ended."""
        while True:
            described = self.describe()
            if described["state"] in ENDED or done(described):
                return described
            if time.monotonic() > self.deadline:
                raise Failure(f"the job: {what}: no time left: it is "
                              f"{described['state']}, {described['reason']}, "
                              f"see {self.folder}")
            time.sleep(0.1)


def losses_of(described):
    return [step["loss"] for step in described["steps"]]


def make_job(arguments):
    """Words at random, as tokens, and a job on them."""
    path = os.path.join(arguments.work, "words")
    draw = random.Random(1)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 7)))
             for _ in range(200)]
    with open(path + ".txt", "w", encoding="utf-8") as file:
        file.write(" ".join(draw.choices(words, k=40000)))
    subprocess.run([os.path.join(arguments.bin, "troupe"), "data", "prepare",
                    path + ".txt", "--tokenizer", "bytes", "--out",
                    path + ".tokens"], check=True, stdout=subprocess.DEVNULL)
    job = os.path.join(arguments.work, "job.yaml")
    with open(job, "w", encoding="utf-8") as file:
        file.write(JOB % STEPS)
    return job


class Table:
    """Rows for run.sh; remembers whether one failed."""

    def __init__(self, file):
        self.file, self.failed = file, False

    def add(self, what, result):
        self.failed |= result.startswith("FAILED")
        print(f"{what}: {result}", flush=True)
        if self.file:
            with open(self.file, "a", encoding="utf-8") as rows:
                rows.write(f"cluster\t{what}\t{result}\n")

    def compare(self, what, precision, losses, reference):
        if len(losses) != STEPS or len(reference) != STEPS:
            return self.add(what, f"FAILED: {len(losses)} and "
                                  f"{len(reference)} steps, not {STEPS}")
        largest = max(abs(a - b) for a, b in zip(losses, reference))
        text = (f"largest difference of {STEPS} losses {largest:.1e}, may be "
                f"{LARGEST[precision]:.0e}; {reference[0]:.3f} to "
                f"{reference[-1]:.3f}")
        learned = reference[-1] < reference[0] - 0.5
        good = largest <= LARGEST[precision] and learned
        return self.add(what, text if good else "FAILED: " + text)


def train(arguments, job, clusters, deadline):
    """Losses by cluster and precision."""
    losses = {}
    for name, (device, ranks, apart, precisions) in clusters.items():
        with Cluster(arguments, name, device, ranks, apart,
                     deadline) as cluster:
            for precision in precisions:
                losses[name, precision] = cluster.losses(
                    job, ranks, f"training.precision={precision}")
    return losses


def recover(arguments, job, deadline, table):
    """A spare worker takes the place of one that is killed."""
    ranks = arguments.workers
    settings = ["recovery.copies=1", "recovery.every=1",
                f"training.steps={STEPS_WITH_A_KILL}"]
    with Cluster(arguments, "recovers", arguments.device, ranks + 1, True,
                 deadline) as cluster:
        quiet = cluster.losses(job, ranks, *settings)
        killed = cluster.kill_in(job, ranks, *settings)
    state, restarts = killed["state"], killed["restarts"]
    same = losses_of(killed) == quiet
    text = (f"{state.lower()}, {restarts} restart, stood "
            f"{killed['stood_seconds']:.2f} s, losses "
            f"{'' if same else 'not '}those of a quiet run to the bit")
    good = (state == "SUCCEEDED" and restarts == 1 and same and
            len(quiet) == STEPS_WITH_A_KILL)
    table.add(f"1 of {ranks} workers killed, f32",
              text if good else "FAILED: " + text)


def run(arguments, deadline, table):
    device, ranks = arguments.device, arguments.workers
    clusters = {"one": (device, 1, False, LARGEST),
                "several": (device, ranks, False, LARGEST)}
    if device != "cpu":
        clusters["by NCCL"] = (device, ranks, True, LARGEST)
        clusters["cpu"] = ("cpu", 1, False, ["f32"])
    job = make_job(arguments)
    losses = train(arguments, job, clusters, deadline)
    for name, how in (("several", ""), ("by NCCL", " by NCCL")):
        for precision in LARGEST if name in clusters else []:
            table.compare(f"{ranks} workers on {device}{how}, {precision}",
                          precision, losses[name, precision],
                          losses["one", precision])
    if device != "cpu":
        table.compare(f"{device} beside the CPU, f32", "f32",
                      losses["one", "f32"], losses["cpu", "f32"])
    recover(arguments, job, deadline, table)


def main():
    arguments = parse_arguments()
    arguments.work = os.path.abspath(arguments.work)
    deadline = time.monotonic() + arguments.seconds
    shutil.rmtree(arguments.work, ignore_errors=True)
    os.makedirs(arguments.work)
    table = Table(arguments.rows)
    try:
        run(arguments, deadline, table)
    except (Failure, OSError, subprocess.SubprocessError, ValueError,
            LookupError) as failure:
        table.add("daemons", f"FAILED: {failure}")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
