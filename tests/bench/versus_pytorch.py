"""Troupe's training step beside PyTorch's, in turns, on this machine.

    python3 -m venv ~/torch && ~/torch/bin/pip install torch numpy
    bazel build //tests/bench:step_bench //tests/bench:machine_span_main
    ~/torch/bin/python tests/bench/versus_pytorch.py bazel-bin/tests/bench/step_bench

    ~/torch/bin/python tests/bench/versus_pytorch.py bazel-bin/tests/bench/step_bench --layouts t2x1 s2x1
    ~/torch/bin/python tests/bench/versus_pytorch.py bazel-bin/tests/bench/step_bench --layouts c2x1 --seq 4096
    ~/torch/bin/python tests/bench/versus_pytorch.py bazel-bin/tests/bench/step_bench --layouts z2:2x1 z3:2x1
    ~/torch/bin/pip install transformers
    ~/torch/bin/python tests/bench/versus_pytorch.py bazel-bin/tests/bench/step_bench --models mixtral --precisions f32 --layouts e2x1

For each model, precision and layout it starts ours (step_bench: real train
loops over real communicators) and PyTorch's (pytorch_step.py: eager and
torch.compile, DistributedDataParallel on Gloo where there are several
processes; where the layout begins with a t, tensor parallelism instead, with an
s sequence parallelism too, with z2: or z3: ZeRO and FSDP2, with an e each
process has some of the experts (pytorch_experts.py), with a c ours cuts
sequences over processes as Ulysses does, with an r as rings, of which PyTorch,
whose context_parallel has no attention for CPUs, is one with all threads), both
paced: one step of one, one step of the next, and so on, so that what else goes on strikes all
alike. A step counts from the order to the
answer. Prints medians of tokens/s, and ours over PyTorch's best, and how the
machine was meanwhile (machine_span.h), where machine_span_main lies beside ours.

bf16 is autocast in PyTorch, which keeps f32 weights as ours does; "pure" is
beside it, whose weights and AdamW moments are bf16 too.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
VARIANTS = {"f32": ["eager", "compile"],
            "bf16": ["autocast-eager", "autocast-compile", "pure-eager",
                     "pure-compile"]}
# Of a mixture of experts; ours is compared with the fastest of all.
EXPERTS_VARIANTS = ["loop-eager", "loop-compile", "grouped-eager",
                    "grouped-compile"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ours", help="the binary of step_bench")
    parser.add_argument("--models", nargs="+", default=["gpt2", "llama"])
    parser.add_argument("--precisions", nargs="+", default=["f32", "bf16"])
    parser.add_argument("--layouts", nargs="+", type=Layout,
                        default=[Layout("1x2"), Layout("2x1")],
                        metavar="[t|s|c|r|e|z2:|z3:]PROCESSESxTHREADS")
    parser.add_argument("--batch", type=int, default=1,
                        help="sequences of a step, of each replica")
    parser.add_argument("--seq", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-compile", action="store_true",
                        help="leaves torch.compile out")
    return parser.parse_args()


class Layout:
    """Processes, their threads, and what is cut over them."""

    def __init__(self, text):
        self.text = text
        self.tensor, self.sequence = text[0] in "ts", text[0] == "s"
        self.context = text[0] in "cr"
        self.expert = text[0] == "e"
        self.zero = int(text[1]) if text[0] == "z" else 0
        self.processes, self.threads = map(
            int, text.rpartition(":")[2].lstrip("tscre").split("x"))
        self.replicas = 1 if self.tensor or self.context else self.processes

    def ours(self):
        return (["--workers", str(self.processes), "--threads",
                 str(self.threads)] +
                (["--context", str(self.processes), "--context-method",
                  "ring" if self.text[0] == "r" else "ulysses"]
                 if self.context else []))

    def theirs(self):
        return ["--threads", str(self.their_threads())] + (
            ["--ddp", str(self.processes)]
            if self.replicas > 1 and not self.expert else [])

    def their_threads(self):
        return self.threads * (self.processes if self.context else 1)

    def arguments(self):
        """Of both contestants."""
        return ((["--tensor", str(self.processes)] if self.tensor else []) +
                (["--sequence-parallel"] if self.sequence else []) +
                (["--expert", str(self.processes)] if self.expert else []) +
                (["--zero", str(self.zero)] if self.zero else []))


class Contestant:
    """A paced process: a step for each line, and its variants by name."""

    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, **(environment or {})))

    def await_line(self, expected):
        while (line := self.process.stdout.readline()):
            if line.strip() == expected:
                return
        raise SystemExit(f"{self.process.args[0]} ended early")

    def step(self, variant):
        """Seconds."""
        start = time.perf_counter()
        self.process.stdin.write(variant + "\n")
        self.process.stdin.flush()
        self.await_line("done")
        return time.perf_counter() - start

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Machine:
    """How the machine is while others measure, and what they use of it."""

    def __init__(self, ours, threads):
        program = os.path.join(os.path.dirname(ours), "machine_span_main")
        self.process = None
        self.used_before = self.used()
        if os.path.exists(program):
            self.process = subprocess.Popen(
                [program, str(threads)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True)

    @staticmethod
    def used():
        """Processor seconds of this process and of its children that ended."""
        usages = [resource.getrusage(who) for who in
                  (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    def probe(self):
        if self.process:
            self.process.stdin.write("probe\n")
            self.process.stdin.flush()

    def line(self):
        """REQUIRES that the contestants have ended."""
        if not self.process:
            return "machine: not watched, for there is no machine_span_main"
        used = self.used() - self.used_before
        return self.process.communicate(f"{used}\n")[0].strip()


def start(arguments, model, precision, layout, variants):
    common = ["--model", model, "--precision", precision, "--batch",
              str(arguments.batch), "--seq", str(arguments.seq),
              "--paced"] + layout.arguments()
    ours = Contestant([arguments.ours] + layout.ours() + common)
    entries = [("ours", ours)]
    # pytorch_step.py says why one of tensor parallelism runs one variant.
    for together in ([[v] for v in variants] if layout.tensor else [variants]):
        theirs = Contestant(
            [sys.executable, os.path.join(FOLDER, "pytorch_step.py")] +
            layout.theirs() + common + ["--variants"] + together,
            {"OMP_NUM_THREADS": str(layout.their_threads())})
        entries += [(variant, theirs) for variant in together]
    for contestant in contestants(entries):
        contestant.await_line("ready")
    return entries


def contestants(entries):
    """Each once."""
    return {id(contestant): contestant for _, contestant in entries}.values()


def measure(arguments, model, precision, layout):
    of_model = EXPERTS_VARIANTS if model == "mixtral" else VARIANTS[precision]
    variants = [v for v in of_model
                if not (arguments.no_compile and v.endswith("compile"))]
    machine = Machine(arguments.ours, layout.processes * layout.threads)
    entries = start(arguments, model, precision, layout, variants)
    seconds = {name: [] for name, _ in entries}
    for round_number in range(-2, arguments.rounds):  # two to warm up
        for name, contestant in entries:
            taken = contestant.step(name)
            if round_number >= 0:
                seconds[name].append(taken)
        machine.probe()
    for contestant in contestants(entries):
        contestant.close()
    tokens = layout.replicas * arguments.batch * arguments.seq
    rates = {name: tokens / statistics.median(taken)
             for name, taken in seconds.items()}
    report(f"{model} {precision} {layout.text}", rates)
    print(f"{'':16}  {machine.line()}", flush=True)


def report(title, rates):
    ours = rates.pop("ours")
    peers = {}
    for name, rate in rates.items():
        kind = name.rpartition("-")[0]  # autocast, pure, or nothing
        kind = "" if kind in ("loop", "grouped") else kind
        peers[kind] = max(peers.get(kind, 0), rate)
    cells = [f"{title:16}", f"ours {ours:7.1f}"]
    cells += [f"{name} {rate:7.1f}" for name, rate in rates.items()]
    cells += [f"ratio {ours / rate:.2f}" + (f" ({kind})" if kind else "")
              for kind, rate in peers.items()]
    print("  ".join(cells), flush=True)


def main():
    arguments = parse_arguments()
    print(f"tokens/s, {arguments.batch} x {arguments.seq} tokens a replica",
          flush=True)
    for model in arguments.models:
        for precision in arguments.precisions:
            for layout in arguments.layouts:
                measure(arguments, model, precision, layout)


if __name__ == "__main__":
    main()
