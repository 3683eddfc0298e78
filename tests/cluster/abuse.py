"""Eight workers and six jobs, treated badly for ten minutes.

    bazel build //clients/cli:troupe //scheduler:troupe-scheduler //worker:troupe-worker
    python3 tests/cluster/abuse.py [--seconds 600] [--seed 1] [--bin bazel-bin] [--keep]

Real daemons on loopback, started again when they end, as a supervisor would.
Meanwhile: kill -9 and SIGSTOP of workers and of the scheduler, a disk that is
full for a while (a small tmpfs: needs root), a worker that may not read what
jobs name, a second cluster that saves in the same directory, clients that ask
without pause, and a scheduler whose log nobody reads. Nothing may be lost beyond
what docs/operations.md says, no job may be stuck, and every failure must name
its cause (abuse_promises.py).

Prints what was done and what came of it, then the jobs, then the promises. Ends
with 0 where all were kept, 1 where one was broken, 2 where it could not begin.
The seed chooses what is done and when; how the machine answers is its own.
"""

import argparse
import fcntl
import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from abuse_promises import REST_SECONDS, Promises

WORKERS = 8  # the last one may not read what jobs name
BAD = f"w{WORKERS - 1}"
MODEL = """
model: {architecture: gpt2, num_hidden_layers: 4, hidden_size: 64,
        num_attention_heads: 2, vocab_size: 256, max_position_embeddings: 32}
data: {tokens: %(folder)s/data/text.tokens}
training: {steps: 1000000, global_batch_size: 4, micro_batch_size: 1, seed: 7}
optimizer: {lr: 1.0e-3}
"""
RECOVERS = "recovery: {every: 1}\n"
SAVED_IN = {"pair": "disk/pair", "full-disk": "small/ckpt", "elastic": "disk/elastic",
            "saves": "disk/saves"}


def saves(name, every):
    return (f"checkpoint: {{directory: %(folder)s/{SAVED_IN[name]}, every: {every}, "
            "keep: 2}\n")


# name: what its file says beside the model. Eight ranks: one more than there
# are good workers, for the job that goes on with fewer.
JOBS = {
    "pair": "parallelism: {data: 2}\n" + RECOVERS + saves("pair", 100),
    "full-disk": RECOVERS + saves("full-disk", 50),
    "elastic": "parallelism: {data: 2}\nelastic: {min_workers: 1}\n" + RECOVERS +
               saves("elastic", 100),
    "saves": saves("saves", 50),
    "recovers": RECOVERS,
    "short": "",
}
SHORT_STEPS = 40


class CannotBegin(Exception):
    """What a person should read."""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bin", default="bazel-bin", help="the folder of programs")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    return parser.parse_args()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def unread_pipe():
    """A writing end whose reader never reads, with room for a page."""
    reads, writes = os.pipe()
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    return reads, writes


class Daemon:
    """A process that is started again when it ends."""

    def __init__(self, name, words, log, **how):
        self.name, self.words, self.log, self.how = name, words, log, how
        self.process = None
        self.stopped_until = 0.0
        self.expects_end = False
        self.start()

    def start(self):
        self.expects_end = False
        self.process = subprocess.Popen(self.words, stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL, **self.how)

    def kill(self):
        self.expects_end = True
        self.process.kill()
        self.process.wait()

    def pause(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped_until = time.monotonic() + seconds

    def look(self):
        """Wakes it, or starts it again. How it ended by itself, or None."""
        if self.stopped_until and time.monotonic() >= self.stopped_until:
            self.stopped_until = 0.0
            self.process.send_signal(signal.SIGCONT)
        if self.process.poll() is None:
            return None
        how, expected = self.process.returncode, self.expects_end
        self.stopped_until = 0.0
        self.start()
        return None if expected else how


class Abuse:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.dice = random.Random(options.seed)
        self.begun = time.monotonic()
        self.rows = []
        self.ids = {}  # of jobs, by name
        self.promises = Promises(self.say)
        self.root = os.geteuid() == 0
        self.programs = self.copy_programs()
        self.daemons = {}
        self.filled_until = 0.0

    # --- The cluster ---

    def copy_programs(self):
        """Where every user may run them, and no build exchanges them."""
        programs = {}
        os.makedirs(f"{self.folder}/bin")
        for source in ("clients/cli/troupe", "scheduler/troupe-scheduler",
                       "worker/troupe-worker"):
            path = os.path.join(self.options.bin, source)
            if not os.path.exists(path):
                raise CannotBegin(f"no {path}: build it, or name the folder with --bin")
            programs[os.path.basename(source)] = shutil.copy(path, f"{self.folder}/bin")
        return programs

    def make_files(self):
        for name in ("data", "disk", "small", "logs", "other"):
            os.makedirs(f"{self.folder}/{name}")
        os.chmod(self.folder, 0o755)
        os.chmod(f"{self.folder}/data", 0o700)
        os.chmod(f"{self.folder}/disk", 0o700)
        if self.root:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m,mode=700", "abuse",
                            f"{self.folder}/small"], check=True)
        with open(f"{self.folder}/data/text.txt", "w", encoding="ascii") as text:
            for line in range(4000):
                text.write(f"{line} bottles, and {line * 7919 % 1000} on the wall.\n")
        self.run("data", "prepare", f"{self.folder}/data/text.txt", "--out",
                 f"{self.folder}/data/text.tokens", address=False)
        for name, more in JOBS.items():
            with open(f"{self.folder}/{name}.yaml", "w", encoding="ascii") as job:
                job.write((f"name: {name}\n" + MODEL + more) % {"folder": self.folder})

    def start(self):
        self.make_files()
        self.address = f"127.0.0.1:{free_port()}"
        self.unread, log = unread_pipe()
        self.daemons["scheduler"] = Daemon("scheduler", [
            self.programs["troupe-scheduler"], "--insecure", "--state",
            f"{self.folder}/state", "--listen", self.address, "--http",
            f"127.0.0.1:{free_port()}"], log)
        for number in range(WORKERS):
            self.start_worker(f"w{number}", self.address)
            if number == 0:  # it measures the machine for the others
                self.await_workers(1, 180)
        self.await_workers(WORKERS, 60)

    def start_worker(self, name, address):
        how = {"env": {**os.environ, "XDG_CACHE_HOME": f"{self.folder}/cache"}}
        words = [self.programs["troupe-worker"], "--insecure", "--scheduler", address,
                 "--name", name, "--threads", "1", "--device-memory", "512MiB",
                 "--host-memory", "512MiB"]
        if name == BAD and self.root:
            how.update(user=65534, group=65534, extra_groups=[])
            subprocess.run(["chmod", "-R", "a+rwX", f"{self.folder}/cache"], check=True)
        elif name == BAD:
            words += ["--root", f"elsewhere={self.folder}/other"]
        log = open(f"{self.folder}/logs/{name}.log", "ab")
        self.daemons[name] = Daemon(name, words, log, **how)

    def await_workers(self, count, seconds):
        until = time.monotonic() + seconds
        while len(self.alive()) < count:
            if time.monotonic() > until:
                raise CannotBegin(f"{count} workers did not come within {seconds} s; "
                                  f"their logs are in {self.folder}/logs")
            time.sleep(0.2)

    # --- What is asked ---

    def run(self, *words, address=True, timeout=60):
        words = [self.programs["troupe"], *words]
        if address:
            words += ["--scheduler", self.address, "--insecure"]
        return subprocess.run(words, capture_output=True, text=True, timeout=timeout,
                              check=False)

    def ask(self, *words):
        """JSON, or None where nobody answers."""
        try:
            answer = self.run(*words, "--json", timeout=20)
            return json.loads(answer.stdout) if answer.returncode == 0 else None
        except (subprocess.TimeoutExpired, json.JSONDecodeError):
            return None

    def alive(self):
        answer = self.ask("workers") or {}
        return [w for w in answer.get("workers", []) if w.get("state") in ("IDLE", "BUSY")]

    def submit(self, name):
        more = ["--set", f"training.steps={SHORT_STEPS}"] if name == "short" else []
        if name in SAVED_IN and glob.glob(f"{self.folder}/{SAVED_IN[name]}/step-*"):
            more = ["--set", "checkpoint.resume=latest"]
        answer = self.run("submit", f"{self.folder}/{name}.yaml", *more)
        words = answer.stdout.replace(",", " ").split()
        numbers = [int(word) for word in words if word.isdigit()]
        if answer.returncode == 0 and numbers:
            self.ids[name] = numbers[0]
        return answer

    # --- What is done to it ---

    def kill_worker(self):
        name = f"w{self.dice.randrange(WORKERS)}"
        self.daemons[name].kill()
        return f"kill -9 {name}"

    def stop_worker(self):
        name, seconds = f"w{self.dice.randrange(WORKERS)}", self.dice.uniform(1, 12)
        self.daemons[name].pause(seconds)
        return f"SIGSTOP {name} for {seconds:.0f} s"

    def kill_scheduler(self):
        self.daemons["scheduler"].kill()
        return "kill -9 the scheduler"

    def stop_scheduler(self):
        seconds = self.dice.uniform(1, 10)
        self.daemons["scheduler"].pause(seconds)
        return f"SIGSTOP the scheduler for {seconds:.0f} s"

    def fill_disk(self):
        if not self.root:
            return "a full disk: not without root"
        seconds = self.dice.uniform(5, 20)
        # Without a buffer, which would be written once more when it is closed.
        with open(f"{self.folder}/small/ballast", "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(1 << 16))
            except OSError:
                pass
        self.filled_until = time.monotonic() + seconds
        return f"the small disk is full for {seconds:.0f} s"

    def flood(self):
        """Three clients that ask without pause for eight seconds."""
        until = time.monotonic() + 8
        asks = (["jobs"], ["workers"], ["plan", f"{self.folder}/pair.yaml"],
                ["describe", "1"], ["submit", f"{self.folder}/text.txt"])

        def client(which):
            for turn in range(10_000):
                if time.monotonic() > until:
                    return
                try:
                    self.run(*asks[(which + turn) % len(asks)], timeout=20)
                except subprocess.TimeoutExpired:
                    pass
        for which in range(3):
            threading.Thread(target=client, args=(which,), daemon=True).start()
        return "three clients ask without pause for 8 s"

    def second_cluster(self):
        """Its job saves where `pair` does."""
        threading.Thread(target=self.run_second_cluster, daemon=True).start()
        return "a second cluster saves in the directory of `pair`"

    def run_second_cluster(self):
        address = f"127.0.0.1:{free_port()}"
        folder = tempfile.mkdtemp(dir=f"{self.folder}/other")
        with open(f"{folder}/log", "wb") as log:
            scheduler = subprocess.Popen(
                [self.programs["troupe-scheduler"], "--insecure", "--state",
                 f"{folder}/state", "--listen", address], stdout=log, stderr=log)
            workers = [subprocess.Popen(
                [self.programs["troupe-worker"], "--insecure", "--scheduler", address,
                 "--name", f"other-{n}", "--threads", "1", "--device-memory", "512MiB"],
                stdout=log, stderr=log,
                env={**os.environ, "XDG_CACHE_HOME": f"{self.folder}/cache"})
                       for n in range(2)]
            there = ["--scheduler", address, "--insecure"]
            try:
                time.sleep(2)
                holder = self.ask("describe", str(self.ids.get("pair", 1)))
                self.run("submit", f"{self.folder}/pair.yaml", *there, address=False)
                time.sleep(10)
                answer = self.run("jobs", "--json", *there, address=False)
                jobs = json.loads(answer.stdout or "{}").get("jobs", [])
                self.promises.second_cluster(jobs, holder)
            except (subprocess.TimeoutExpired, json.JSONDecodeError):
                self.say("", "the second cluster did not answer")
            finally:
                for process in [*workers, scheduler]:
                    process.kill()
                    process.wait()

    # --- The course of it ---

    def say(self, what, seen=""):
        row = f"{time.monotonic() - self.begun:7.1f} s  {what:<52} {seen}".rstrip()
        self.rows.append(row)
        print(row, flush=True)

    def look_after_daemons(self):
        if self.filled_until and time.monotonic() >= self.filled_until:
            self.filled_until = 0.0
            os.remove(f"{self.folder}/small/ballast")
        for name, daemon in self.daemons.items():
            how = daemon.look()
            self.promises.hold("no daemon ends by itself", how is None,
                               f"{name} ended with {how}")

    def undisturbed(self):
        return not any(d.stopped_until for d in self.daemons.values())

    def look(self):
        """At the jobs: those that have ended come again, as a user would have it."""
        answer = self.ask("jobs")
        self.promises.answered(answer is not None, self.undisturbed())
        if answer is None:
            return
        jobs = {job["id"]: job for job in answer.get("jobs", [])}
        for name in JOBS:
            job = jobs.get(self.ids.get(name))
            if job is None:
                self.submit(name)
                continue
            self.promises.look(name, job, BAD,
                               lambda job=job: self.ask("describe", str(job["id"])))
            if job["state"] in ("SUCCEEDED", "FAILED", "CANCELLED"):
                self.promises.ended(name, self.ask("describe", str(job["id"])) or {},
                                    SHORT_STEPS if name == "short" else None)
                self.say("", f"{name} (job {job['id']}): {job['state']} "
                             f"{job.get('reason', '')[:160]}")
                self.submit(name)
        for worker in self.alive():
            name = worker["description"]["name"]
            aside = worker.get("set_aside", "")
            if aside and name != BAD:  # we killed it often, which is not its fault
                self.say("", f"{name} is set aside, and put back")
                self.run("workers", "uncordon", name)
            elif aside:
                self.promises.bad_one_is_aside(aside)

    def run_for(self, seconds, abuses):
        until = time.monotonic() + seconds
        next_abuse = next_look = time.monotonic()
        while time.monotonic() < until:
            self.look_after_daemons()
            if abuses and time.monotonic() >= next_abuse:
                self.say(self.dice.choice(abuses)())
                next_abuse = time.monotonic() + self.dice.uniform(2, 6)
            if time.monotonic() >= next_look:
                self.look()
                next_look = time.monotonic() + 2
            time.sleep(0.1)

    def finish(self):
        """All is left alone, and each job must get on; then all are saved."""
        self.say("left alone")
        self.promises.begin_rest()
        self.run_for(REST_SECONDS, [])
        for name, number in self.ids.items():
            self.promises.rested(name, self.ask("describe", str(number)))
            saved = ["--checkpoint"] if name in SAVED_IN else []
            self.run("cancel", str(number), *saved)
        until = time.monotonic() + 60
        for name, number in self.ids.items():
            while True:
                job = self.ask("describe", str(number)) or {}
                state = job.get("state")
                if state in ("SUCCEEDED", "FAILED", "CANCELLED") or time.monotonic() > until:
                    break
                self.look_after_daemons()
                time.sleep(0.3)
            self.promises.last_seen(name, job, saves=name in SAVED_IN)

    def end(self):
        for daemon in self.daemons.values():
            daemon.process.kill()
            daemon.process.wait()
        if self.root:
            subprocess.run(["umount", "-l", f"{self.folder}/small"], check=False,
                           stderr=subprocess.DEVNULL)


def main():
    options = parse_arguments()
    folder = tempfile.mkdtemp(prefix="troupe-abuse-")
    try:
        abuse = Abuse(options, folder)
        try:
            abuse.start()
            abuse.say("eight workers, of whom " + BAD + " may not read the data")
            for name in JOBS:
                abuse.submit(name)
            abuse.run_for(20, [])
            abuse.run_for(options.seconds, [
                abuse.kill_worker, abuse.kill_worker, abuse.stop_worker,
                abuse.kill_scheduler, abuse.stop_scheduler, abuse.fill_disk,
                abuse.flood, abuse.second_cluster])
            abuse.finish()
        finally:
            abuse.end()
        kept = abuse.promises.report()
    except CannotBegin as error:
        print(f"abuse: {error}", file=sys.stderr)
        return 2
    if options.keep or not kept:
        print(f"the folder is kept: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
