"""A real cluster for tests: daemons on loopback, in a folder of the test's own,
ports from the kernel, everything ended with it. And a tiny job for it, and a
bound on the time of each test.
"""

import faulthandler
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent import futures
from pathlib import Path

# Where Bazel put the programs, from the test's working directory.
PROGRAMS = Path(os.environ.get("TROUPE_PROGRAMS", os.getcwd()))
TROUPE = str(PROGRAMS / "clients/cli/troupe")

# A test, or a command of `troupe`, that takes longer waits for what does not
# come. On a machine with ten busy programs for each core they take 10 s.
PATIENCE_SECONDS = 90

# Bazel's timeout ends the test by this signal: it says first where it was.
faulthandler.register(signal.SIGTERM, chain=True)

MODEL = {
    "architecture": "gpt2",
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 16,
}


def temporary_folder():
    return tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))


def run_troupe(*arguments):
    """Runs `troupe` to its end, which must be a good one; what it printed."""
    command = f"troupe {' '.join(arguments)}"
    try:
        done = subprocess.run(
            [TROUPE, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"{command}: {late}; it said: {late.stderr}") from None
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr}")
    return done.stdout


class ClusterTest(unittest.TestCase):
    """A test that fails, in the line where it waits, when it takes too long."""

    def run(self, result=None):
        def fail(*_):
            late = f"{self.id()} takes longer than {PATIENCE_SECONDS} s"
            logs = "".join(cluster.last_words() for cluster in RealCluster.all)
            # At once, since unittest prints failures after the last test.
            print(f"\n{late}{logs}", file=sys.stderr, flush=True)
            raise AssertionError(late)

        before = signal.signal(signal.SIGALRM, fail)
        # Again and again, since what follows may wait as well.
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS, PATIENCE_SECONDS)
        try:
            return super().run(result)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


class RealCluster:
    all = []  # of this program

    def __init__(self, folder):
        RealCluster.all.append(self)
        self.dir = Path(folder) / "cluster"
        self.dir.mkdir()
        self.tokens = self.dir / "tiny.tokens"
        os.environ["XDG_CACHE_HOME"] = str(folder)
        subprocess.run([PROGRAMS / "tests/cluster/calibrate_briefly"], check=True)
        text = self.dir / "tiny.txt"
        text.write_text("".join(f"line {i * i % 97} of a text\n" for i in range(900)))
        run_troupe("data", "prepare", str(text), "--out", str(self.tokens))
        self.up()

    def up(self):
        """Starts what does not run."""
        workers = ["--workers", "2", "--threads", "1"]
        run_troupe("up", *workers, "--dir", str(self.dir))

    def down(self):
        run_troupe("down", "--dir", str(self.dir))

    def last_words(self):
        """The ends of its daemons' logs."""
        said = ""
        for log in sorted((self.dir / "logs").glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-12:]
            said += f"\n--- {log.name}\n" + "\n".join(lines)
        return said

    def restart_scheduler(self):
        """kill -9, and up() in a thread, whose result the future waits for."""
        self.kill_scheduler()
        thread = futures.ThreadPoolExecutor(1)
        restarted = thread.submit(self.up)
        thread.shutdown(wait=False)
        return restarted

    def kill_scheduler(self):
        """kill -9, and waits until it is gone."""
        members = json.loads((self.dir / "pids.json").read_text())["members"]
        pid = next(m["pid"] for m in members if m["name"] == "scheduler")
        os.kill(pid, signal.SIGKILL)
        while self._runs(pid):
            time.sleep(0.001)

    @staticmethod
    def _runs(pid):
        """As `troupe` sees it (proto/base/process_state.h): a zombie runs until the
        last of its threads has ended."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        state, threads = fields[0], int(fields[20 - 3])
        return state != "X" and (state != "Z" or threads > 1)

    def job(self, **training):
        """A job of two ranks, and a second or less."""
        return {
            "name": "tiny",
            "model": MODEL,
            "data": {"tokens": self.tokens, "validation_fraction": 0.1},
            "training": {
                "steps": 20,
                "global_batch_size": 8,
                "micro_batch_size": 1,
                "seed": 7,
                "validate_every": 10,
                **training,
            },
            "optimizer": {"lr": 1e-3},
            "parallelism": {"data": 2},
        }
