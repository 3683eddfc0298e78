"""Troupe's training step beside PyTorch's on this machine's GPU, one after the
other, each with the batch that suits it best.

    bazel build --config=cuda //tests/bench:step_bench
    python3 tests/bench/versus_pytorch_gpu.py bazel-bin/tests/bench/step_bench

Ours is step_bench, a real train loop; PyTorch's is pytorch_step.py: torch.compile,
bf16 by autocast, fused AdamW, scaled_dot_product_attention, which takes a flash
kernel in bf16. Both keep f32 weights. Steps are timed together, in one span in
which nobody waits for a step but the last, since ours begin before the one before
has ended. Each doubles its batch until memory is full
or tokens/s grow by less than 1 %. For each model prints

    tokens/s of both and their ratio
    mfu     model FLOP/s (6 N + 12 L C T a token) over what cuBLASLt's products
            of 8192^3 in that precision reach in the same run, ours and theirs
    memory  what ours took of the GPU's over what the plan said

Models come in the order of their worth; what --seconds leave no time for is
skipped and said to be.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
# Model, precision, tokens of a sequence, first batch tried, share of the time.
CASES = [("gpt2-1.5b", "bf16", 1024, 8, 3), ("gpt2", "bf16", 1024, 16, 2),
         ("llama-1b", "bf16", 4096, 2, 2), ("gpt2", "f32", 1024, 8, 1)]
LEAST_SECONDS = 25  # for a model, else it is not begun


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ours", help="the binary of step_bench")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--libraries", metavar="PATH",
                        default=os.environ.get("LD_LIBRARY_PATH", ""),
                        help="LD_LIBRARY_PATH of ours, not of PyTorch's")
    parser.add_argument("--rows", metavar="FILE",
                        help="also append the table's rows to FILE")
    return parser.parse_args()


def run(command, seconds, environment=None):
    """What it printed, though it may have failed or been stopped."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True,
                               env=environment, start_new_session=True)
    try:
        printed, errors = process.communicate(timeout=max(1, seconds))
        if process.returncode != 0:
            print(f"  {' '.join(command[1:])}: {last_line(errors)}",
                  flush=True)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with ranks and compilers
        printed, _ = process.communicate()
        print(f"  {' '.join(command[1:])}: no time left", flush=True)
    return printed


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else "failed without a word"


def number(pattern, text):
    found = re.search(pattern, text)
    return float(found.group(1)) if found else None


def our_step(arguments, case, batch, seconds):
    model, precision, length = case[:3]
    text = run([arguments.ours, "--model", model, "--precision", precision,
                "--seq", str(length), "--batch", str(batch), "--device",
                arguments.device, "--steps", str(arguments.steps)], seconds,
               dict(os.environ, LD_LIBRARY_PATH=arguments.libraries))
    rate = number(r"([\d.]+) tokens/s", text)
    if rate is None:
        return None
    return dict(batch=batch, tokens_per_second=rate,
                flops=number(r"([\d.e+]+) model FLOPs a token", text),
                products=1e9 * number(r"product \S+: ([\d.]+) GFLOP/s", text),
                mfu=number(r"product rate: ([\d.]+)", text),
                memory=number(r"MiB planned: ([\d.]+)", text),
                machine=next((line for line in text.splitlines()
                              if line.startswith("machine: ")), ""))


def our_best(arguments, case, deadline):
    best, batch = None, case[3]
    while (left := deadline - time.monotonic()) > 0:
        step = our_step(arguments, case, batch, left)
        if step is not None:
            print(f"  ours, batch {batch}: {step['tokens_per_second']:.0f} "
                  f"tokens/s; {step['machine']}", flush=True)
        if best is None and step is None and batch > 1:
            batch //= 2  # the first was too large
            continue
        if step is None or (best is not None and step["tokens_per_second"] <
                            1.01 * best["tokens_per_second"]):
            break
        best, batch = step, 2 * batch
    return best


def their_best(arguments, case, deadline):
    model, precision, length, batch = case[:4]
    left = deadline - time.monotonic()
    text = run([sys.executable, os.path.join(FOLDER, "pytorch_step.py"),
                "--find-batch", "--device", arguments.device, "--model", model,
                "--precision", precision, "--seq", str(length), "--batch",
                str(batch), "--steps", str(arguments.steps), "--seconds",
                str(left / 2)], left)
    steps = [json.loads(line) for line in text.splitlines()
             if line.startswith("{")]
    for step in steps:
        print(f"  PyTorch, {step['variant']}, batch {step['batch']}: "
              f"{step['tokens_per_second']:.0f} tokens/s, "
              f"{step['peak_mib']} MiB", flush=True)
    return max(steps, key=lambda step: step["tokens_per_second"], default=None)


def result(ours, theirs):
    if ours is None:
        return "FAILED: ours took no step"
    cells = [f"ours {ours['tokens_per_second']:.0f} tokens/s "
             f"(batch {ours['batch']})"]
    mfu = f"mfu {ours['mfu']:.3f}"
    if theirs is None:
        cells.append("PyTorch not measured")
    else:
        rate = theirs["tokens_per_second"]
        cells += [f"PyTorch {rate:.0f} ({theirs['variant']}, batch "
                  f"{theirs['batch']})",
                  f"ratio {ours['tokens_per_second'] / rate:.2f}"]
        mfu += f" and {rate * ours['flops'] / ours['products']:.3f}"
    cells += [f"{mfu} of {1e-12 * ours['products']:.0f} TFLOP/s"]
    if ours["memory"] is not None:
        cells += [f"memory {ours['memory']:.2f} of the plan"]
    return ", ".join(cells)


def measure(arguments, case, seconds):
    now = time.monotonic()
    ours = our_best(arguments, case, now + 0.4 * seconds)
    return result(ours, their_best(arguments, case, now + seconds))


def main():
    arguments = parse_arguments()
    end = time.monotonic() + arguments.seconds
    failed = False
    for index, case in enumerate(CASES):
        name = f"{case[0]} {case[1]}, {case[2]} tokens"
        print(name, flush=True)
        shares = [case[4] for case in CASES[index:]]
        share = (end - time.monotonic()) * shares[0] / sum(shares)
        outcome = ("skipped, no time left" if share < LEAST_SECONDS else
                   measure(arguments, case, share))
        failed |= outcome.startswith("FAILED")
        print(f"{name}: {outcome}", flush=True)
        if arguments.rows:
            with open(arguments.rows, "a", encoding="utf-8") as rows:
                rows.write(f"bench\t{name}\t{outcome}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
