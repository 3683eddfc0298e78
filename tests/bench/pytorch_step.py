"""How fast PyTorch trains on this machine: the peer of step_bench.

    python3 -m venv ~/torch && ~/torch/bin/pip install torch numpy
    ~/torch/bin/python tests/bench/pytorch_step.py --model gpt2 --threads 2
    ~/torch/bin/python tests/bench/pytorch_step.py --model llama --precision bf16 --ddp 2 --threads 1
    ~/torch/bin/python tests/bench/pytorch_step.py --model gpt2 --tensor 2 --sequence-parallel --threads 1
    ~/torch/bin/python tests/bench/pytorch_step.py --model mixtral --expert 2 --threads 1

A step is forward and backward of one batch a process, clipping to a norm of 1,
and AdamW, fused, with two decay groups. Processes of --tensor share one batch.
Those of --expert are as those of --ddp, but each has some of the experts.
Prints tokens/s (median of the steps) of each variant, in turns:

  eager, compile               f32
  autocast-eager, -compile     bf16 products, weights and AdamW's state f32
  pure-eager, -compile         weights, gradients and AdamW's state bf16
  loop-eager, -compile         a mixtral, in f32: its experts one by one, or
  grouped-eager, -compile      their grouped product (pytorch_experts.py), which
                               are not compiled, while all else is

On a GPU, --device cuda:0, only --find-batch: it doubles the batch from --batch
on until memory is full, the step is no faster for it, or --seconds are over.
Blocks and loss are compiled one by one there, which takes seconds where whole
models take minutes; the whole model is then compiled for the best batch. Prints
a line of JSON for each.

With --tensor each variant has processes of its own, for PyTorch 2.15 does not
compile what uses loss_parallel where such a thing has run before. --check trains
for some steps beside the model that is cut nowhere, in each process: it prints
how far their losses are apart, and ends with 1 where that is more than rounding.

--paced makes it wait: each line of stdin names a variant, one step of which is
run; "done" answers. versus_pytorch.py runs it so.
"""

import argparse
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed
import torch.multiprocessing
from torch.distributed.fsdp import fully_shard

import pytorch_models
import pytorch_tensor

VARIANTS = {"f32": ["eager", "compile"],
            "bf16": ["autocast-eager", "autocast-compile", "pure-eager",
                     "pure-compile"]}
EXPERTS_VARIANTS = ["loop-eager", "loop-compile", "grouped-eager",
                    "grouped-compile"]


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
    parser.add_argument("--tensor", type=int, default=0, metavar="N",
                        help="tensor parallelism on Gloo, N processes")
    parser.add_argument("--sequence-parallel", action="store_true")
    parser.add_argument("--expert", type=int, default=0, metavar="N",
                        help="experts shared by N processes on Gloo")
    parser.add_argument("--zero", type=int, choices=[2, 3], default=0,
                        help="of --ddp: FSDP2 (fully_shard) in its place")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--paced", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--find-batch", action="store_true")
    parser.add_argument("--seconds", type=float, default=120,
                        help="after which --find-batch tries no more")
    arguments = parser.parse_args()
    has_experts = "experts" in pytorch_models.MODELS[arguments.model]
    arguments.variants = arguments.variants or (
        EXPERTS_VARIANTS if has_experts else VARIANTS[arguments.precision])
    arguments.processes = max(1, arguments.ddp, arguments.tensor,
                              arguments.expert)
    if sum(map(bool, (arguments.ddp, arguments.tensor, arguments.expert))) > 1:
        parser.error("--ddp, --tensor and --expert are not combined")
    if has_experts and (arguments.precision != "f32" or arguments.tensor or
                        arguments.zero):
        parser.error(f"--model {arguments.model} is in f32, with --ddp or "
                     "--expert")
    if arguments.expert and not has_experts:
        parser.error(f"--expert: {arguments.model} has no experts")
    if arguments.check and not arguments.tensor and not arguments.expert:
        parser.error("--check is of --tensor and --expert")
    if arguments.tensor and arguments.paced and len(arguments.variants) > 1:
        parser.error("--tensor takes one variant of --paced")
    return arguments


class Trainer:
    """A model, its optimizer, and its variants, which share both."""

    def __init__(self, arguments, pure, lr=1e-5):
        self.device = torch.device(arguments.device)
        with self.device:
            self.model = pytorch_models.build(arguments.model,
                                              arguments.seq)
        if pure:
            self.model.to(torch.bfloat16)
        self.tensor = arguments.tensor
        if arguments.tensor:
            pytorch_tensor.cut(self.model, arguments.sequence_parallel,
                               torch.distributed.init_device_mesh(
                                   "cpu", (arguments.tensor,)))
        if arguments.zero:
            shard(self.model, arguments.zero == 3)
        ignored = []
        if arguments.expert:
            import pytorch_experts
            pytorch_experts.cut(self.model)
            ignored = pytorch_experts.names(self.model)
        self.experts = [p for name, p in self.model.named_parameters()
                        if name in ignored]
        self.parameters = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(
            decay_groups(self.parameters), lr=lr, betas=(0.9, 0.95), eps=1e-8,
            fused=True)
        self.whole_model = self.model
        if (arguments.ddp and not arguments.zero) or arguments.expert:
            ddp = torch.nn.parallel.DistributedDataParallel
            ddp._set_params_and_buffers_to_ignore_for_model(self.model, ignored)
            self.model = ddp(self.model, gradient_as_bucket_view=True)
        self.compiled = torch.compile(self.model, dynamic=False)

    def compile_parts(self):
        for block in self.model.blocks:
            block.compile(dynamic=False)
        self.model.loss = torch.compile(self.model.loss, dynamic=False)

    def use_experts(self, variant):
        """As the variant says, where the model has any."""
        implementation = variant.partition("-")[0]
        if implementation in ("loop", "grouped"):
            import pytorch_experts
            pytorch_experts.use(self.whole_model, implementation)

    def clip_gradients(self):
        if not self.experts:
            return pytorch_tensor.clip_gradients(self.parameters, 1.0)
        import pytorch_experts
        own = set(self.experts)
        pytorch_experts.clip_gradients(
            [p for p in self.parameters if p not in own], self.experts, 1.0)

    def step(self, compiled, autocast, batch):
        """Its loss."""
        return self.enqueue(compiled, autocast, batch).item()

    def enqueue(self, compiled, autocast, batch):
        """Its loss, which a GPU may still work on."""
        model = self.compiled if compiled else self.model
        with pytorch_tensor.loss_context(self.tensor):
            with (torch.autocast(self.device.type, torch.bfloat16)
                  if autocast else contextlib.nullcontext()):
                loss = model(*batch)
            loss.backward()
        self.clip_gradients()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return pytorch_tensor.whole(loss.detach())


def shard(model, reshard_after_forward):
    """FSDP2: each block a unit, and the rest of the model one."""
    for block in model.blocks:
        fully_shard(block, reshard_after_forward=reshard_after_forward)
    fully_shard(model, reshard_after_forward=reshard_after_forward)


def decay_groups(parameters):
    """Each of tensors of one sort: fused AdamW takes no two in one."""
    return [{"params": of_kind, "weight_decay": decay}
            for alike in pytorch_tensor.split(parameters)
            for of_kind, decay in (
                ([p for p in alike if p.dim() >= 2], 0.1),
                ([p for p in alike if p.dim() < 2], 0.0)) if of_kind]


class Contestant:
    """Runs single steps of variants, by name."""

    def __init__(self, arguments):
        pure = {variant.startswith("pure") for variant in arguments.variants}
        self.trainers = {p: Trainer(arguments, p) for p in pure}
        self.batch = random_batch(arguments)

    def step(self, variant):
        """Its loss."""
        trainer = self.trainers[variant.startswith("pure")]
        trainer.use_experts(variant)
        return trainer.step(variant.endswith("compile"),
                            variant.startswith("autocast"), self.batch)

    def parameter_count(self):
        trainer = next(iter(self.trainers.values()))
        return sum(p.numel() for p in trainer.parameters)


def random_batch(arguments):
    """Tokens and targets."""
    vocab = pytorch_models.MODELS[arguments.model]["vocab"]
    return torch.randint(vocab, (2, arguments.batch, arguments.seq)).unbind()


def next_variant(arguments):
    """What stdin of rank 0 asks of all ranks; nothing at its end."""
    line = [sys.stdin.readline().strip()] if rank() == 0 else [None]
    if arguments.processes > 1:
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


def gathered(arguments, batch):
    """Of all processes that have batches of their own."""
    if not arguments.expert:
        return batch
    parts = []
    for own in batch:
        all_parts = [torch.empty_like(own) for _ in range(arguments.processes)]
        torch.distributed.all_gather(all_parts, own.contiguous())
        parts.append(torch.cat(all_parts))
    return parts


def mean_loss(arguments, loss):
    if not arguments.expert:
        return loss
    total = torch.tensor(loss)
    torch.distributed.all_reduce(total)
    return total.item() / arguments.processes


def check(arguments):
    """Whether what is cut has the losses of what is not."""
    variant, = arguments.variants
    pure, compiled = variant.startswith("pure"), variant.endswith("compile")
    autocast = variant.startswith("autocast")
    batch = random_batch(arguments)
    all_batches = gathered(arguments, batch)

    def losses_of(trainer, compiled, batch):
        trainer.use_experts(variant)
        return [trainer.step(compiled, autocast, batch)
                for _ in range(arguments.steps)]

    losses = [mean_loss(arguments, loss) for loss in losses_of(
        Trainer(arguments, pure, lr=1e-3), compiled, batch)]
    alone = argparse.Namespace(**{**vars(arguments), "tensor": 0, "expert": 0})
    whole = losses_of(Trainer(alone, pure, lr=1e-3), False, all_batches)
    apart = [abs(a - b) / b for a, b in zip(losses, whole)]
    limit = 1e-4 if arguments.precision == "f32" else 1e-2
    good = all(difference <= limit for difference in apart)  # no NaN
    say(f"{variant:18} loss {whole[0]:.4f} to {whole[-1]:.4f} in one process,",
        f"at most {max(apart):.1e} from that in {arguments.processes}:",
        "ok" if good else "FAILED")
    return good


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
    tokens = arguments.batch * arguments.seq * max(1, arguments.ddp,
                                                   arguments.expert)
    say(f"{arguments.model}: {contestant.parameter_count()} parameters,",
        f"{tokens} tokens a step, {arguments.processes} processes of",
        f"{arguments.threads} threads, torch {torch.__version__}")
    for variant, times in seconds.items():
        step = statistics.median(times)
        say(f"{variant:18} {step:7.3f} s {tokens / step:8.1f} tokens/s "
            f"(best {tokens / min(times):.1f}), "
            f"{min(cpu_seconds[variant]):.3f} s of CPU time")


def gpu_tokens_per_second(arguments, trainer, compiled, batch):
    """Of some steps together, none of which waits for the one before; None
    where the GPU has too little memory."""
    vocab = pytorch_models.MODELS[arguments.model]["vocab"]
    tokens = torch.randint(vocab, (2, batch, arguments.seq),
                           device=trainer.device).unbind()
    torch.cuda.reset_peak_memory_stats()
    autocast = arguments.precision == "bf16"
    try:
        for _ in range(3):  # to warm up
            trainer.step(compiled, autocast, tokens)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(arguments.steps):
            trainer.enqueue(compiled, autocast, tokens)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    except torch.cuda.OutOfMemoryError:
        trainer.optimizer.zero_grad()
        return None
    return batch * arguments.seq * arguments.steps / seconds


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
    """Whether all is well."""
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0 if arguments.tensor else process)
    if arguments.processes > 1:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting_file}", rank=process,
            world_size=arguments.processes)
    good = True
    if arguments.check:
        good = check(arguments)
    elif arguments.paced:
        run_paced(arguments, Contestant(arguments))
    else:
        run(arguments, Contestant(arguments))
    if arguments.processes > 1:
        torch.distributed.destroy_process_group()
    return good


def main():
    arguments = parse_arguments()
    if arguments.find_batch:
        return find_batch(arguments)
    apart = arguments.tensor or arguments.check
    if apart and len(arguments.variants) > 1:
        return max(subprocess.call([sys.executable, *sys.argv, "--variants",
                                    variant])
                   for variant in arguments.variants)
    if arguments.processes > 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        # Rank 0 is this process: it has the stdin.
        context = torch.multiprocessing.get_context("spawn")
        others = [context.Process(target=train, args=(
            process, arguments, os.path.join(folder, "meeting")))
            for process in range(1, arguments.processes)]
        for other in others:
            other.start()
        good = train(0, arguments, os.path.join(folder, "meeting"))
        for other in others:
            other.join()
    return None if good else 1


if __name__ == "__main__":
    sys.exit(main())
