"""How fast PyTorch trains on this machine: the peer of step_bench.

    python3 -m venv ~/torch && ~/torch/bin/pip install torch numpy
    ~/torch/bin/python tests/bench/pytorch_step.py --model gpt2 --threads 2
    ~/torch/bin/python tests/bench/pytorch_step.py --model llama --precision bf16 --ddp 2 --threads 1

A step is forward and backward of one batch a process, clipping to a norm of 1,
and AdamW, fused, with two decay groups. Prints tokens/s (median of the steps)
of each variant, in turns:

  eager, compile               f32
  autocast-eager, -compile     bf16 products, weights and AdamW's state f32
  pure-eager, -compile         weights, gradients and AdamW's state bf16

On a GPU, --device cuda:0, only --find-batch: it doubles the batch from --batch
on until memory is full, the step is no faster for it, or --seconds are over.
Blocks and loss are compiled one by one there, which takes seconds where whole
models take minutes; the whole model is then compiled for the best batch. Prints
a line of JSON for each.

--paced makes it wait: each line of stdin names a variant, one step of which is
run; "done" answers. versus_pytorch.py runs it so.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed
import torch.multiprocessing

import pytorch_models

VARIANTS = {"f32": ["eager", "compile"],
            "bf16": ["autocast-eager", "autocast-compile", "pure-eager",
                     "pure-compile"]}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=list(pytorch_models.MODELS),
                        default="gpt2")
    parser.add_argument("--batch", type=int, default=1,
                        help="sequences of a step, of each process")
    parser.add_argument("--seq", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=os.cpu_count(),
                        help="of each process")
    parser.add_argument("--precision", choices=list(VARIANTS), default="f32")
    parser.add_argument("--variants", nargs="+", help="default: all")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--ddp", type=int, default=0, metavar="N",
                        help="DistributedDataParallel on Gloo, N processes")
    parser.add_argument("--paced", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--find-batch", action="store_true")
    parser.add_argument("--seconds", type=float, default=120,
                        help="after which --find-batch tries no more")
    arguments = parser.parse_args()
    arguments.variants = arguments.variants or VARIANTS[arguments.precision]
    return arguments


class Trainer:
    """A model, its optimizer, and its variants, which share both."""

    def __init__(self, arguments, pure):
        self.device = torch.device(arguments.device)
        with self.device:
            self.model = pytorch_models.build(arguments.model)
        if pure:
            self.model.to(torch.bfloat16)
        self.parameters = list(self.model.parameters())
        matrices = [p for p in self.parameters if p.dim() >= 2]
        others = [p for p in self.parameters if p.dim() < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": 0.1},
             {"params": others, "weight_decay": 0.0}],
            lr=1e-5, betas=(0.9, 0.95), eps=1e-8, fused=True)
        if arguments.ddp:
            self.model = torch.nn.parallel.DistributedDataParallel(
                self.model, gradient_as_bucket_view=True)
        self.compiled = torch.compile(self.model, dynamic=False)

    def compile_parts(self):
        for block in self.model.blocks:
            block.compile(dynamic=False)
        self.model.loss = torch.compile(self.model.loss, dynamic=False)

    def step(self, compiled, autocast, batch):
        model = self.compiled if compiled else self.model
        with torch.autocast(self.device.type, torch.bfloat16,
                            enabled=autocast):
            loss = model(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()


class Contestant:
    """Runs single steps of variants, by name."""

    def __init__(self, arguments):
        pure = {variant.startswith("pure") for variant in arguments.variants}
        self.trainers = {p: Trainer(arguments, p) for p in pure}
        vocab = self.trainers[next(iter(pure))].parameters[0].shape[0]
        self.batch = torch.randint(
            vocab, (2, arguments.batch, arguments.seq)).unbind()

    def step(self, variant):
        self.trainers[variant.startswith("pure")].step(
            variant.endswith("compile"), variant.startswith("autocast"),
            self.batch)

    def parameter_count(self):
        trainer = next(iter(self.trainers.values()))
        return sum(p.numel() for p in trainer.parameters)


def next_variant(arguments):
    """What stdin of rank 0 asks of all ranks; nothing at its end."""
    line = [sys.stdin.readline().strip()] if rank() == 0 else [None]
    if arguments.ddp:
        torch.distributed.broadcast_object_list(line, src=0)
    return line[0]


def rank():
    return (torch.distributed.get_rank()
            if torch.distributed.is_initialized() else 0)


def say(*words):
    if rank() == 0:
        print(*words, flush=True)


def run_paced(arguments, contestant):
    say("ready")
    while variant := next_variant(arguments):
        contestant.step(variant)
        say("done")


def run(arguments, contestant):
    for variant in arguments.variants * 2:
        contestant.step(variant)  # to warm up
    seconds = {variant: [] for variant in arguments.variants}
    cpu_seconds = {variant: [] for variant in arguments.variants}
    for _ in range(arguments.steps):
        for variant in arguments.variants:
            start, cpu_start = time.perf_counter(), time.process_time()
            contestant.step(variant)
            seconds[variant].append(time.perf_counter() - start)
            cpu_seconds[variant].append(time.process_time() - cpu_start)
    tokens = arguments.batch * arguments.seq * max(1, arguments.ddp)
    say(f"{arguments.model}: {contestant.parameter_count()} parameters,",
        f"{tokens} tokens a step, {max(1, arguments.ddp)} processes of",
        f"{arguments.threads} threads, torch {torch.__version__}")
    for variant, times in seconds.items():
        step = statistics.median(times)
        say(f"{variant:18} {step:7.3f} s {tokens / step:8.1f} tokens/s "
            f"(best {tokens / min(times):.1f}), "
            f"{min(cpu_seconds[variant]):.3f} s of CPU time")


def gpu_tokens_per_second(arguments, trainer, compiled, batch):
    """The best of some steps; None where the GPU has too little memory."""
    vocab = pytorch_models.MODELS[arguments.model]["vocab"]
    tokens = torch.randint(vocab, (2, batch, arguments.seq),
                           device=trainer.device).unbind()
    torch.cuda.reset_peak_memory_stats()
    times = []
    try:
        for _ in range(3 + arguments.steps):  # three to warm up
            start = time.perf_counter()
            trainer.step(compiled, arguments.precision == "bf16", tokens)
            times.append(time.perf_counter() - start)
    except torch.cuda.OutOfMemoryError:
        trainer.optimizer.zero_grad()
        return None
    return batch * arguments.seq / min(times[3:])


def say_rate(name, batch, rate):
    print(json.dumps(dict(
        variant=name, batch=batch, tokens_per_second=rate,
        peak_mib=round(torch.cuda.max_memory_reserved() / 2**20))), flush=True)


def find_batch(arguments):
    deadline = time.monotonic() + arguments.seconds
    trainer = Trainer(arguments, pure=False)
    trainer.compile_parts()
    best, best_batch, batch = 0, 0, arguments.batch
    while time.monotonic() < deadline:
        rate = gpu_tokens_per_second(arguments, trainer, False, batch)
        torch.cuda.empty_cache()
        if rate is not None:
            say_rate("parts compiled", batch, rate)
        if rate is None or rate < 1.01 * best:
            if best or batch == 1:
                break
            batch //= 2  # the first was too large
            continue
        best, best_batch = rate, batch
        batch *= 2
    del trainer
    gc.collect()
    torch.cuda.empty_cache()
    if best_batch and time.monotonic() < deadline:
        torch.compiler.reset()
        rate = gpu_tokens_per_second(arguments, Trainer(arguments, pure=False),
                                     True, best_batch)
        if rate is not None:
            say_rate("compiled", best_batch, rate)


def train(process, arguments, meeting_file):
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(process)
    if arguments.ddp:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting_file}", rank=process,
            world_size=arguments.ddp)
    contestant = Contestant(arguments)
    if arguments.paced:
        run_paced(arguments, contestant)
    else:
        run(arguments, contestant)
    if arguments.ddp:
        torch.distributed.destroy_process_group()


def main():
    arguments = parse_arguments()
    if arguments.find_batch:
        return find_batch(arguments)
    if arguments.ddp:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        # Rank 0 is this process: it has the stdin.
        context = torch.multiprocessing.get_context("spawn")
        others = [context.Process(target=train, args=(
            process, arguments, os.path.join(folder, "meeting")))
            for process in range(1, arguments.ddp)]
        for other in others:
            other.start()
        train(0, arguments, os.path.join(folder, "meeting"))
        for other in others:
            other.join()


if __name__ == "__main__":
    main()
