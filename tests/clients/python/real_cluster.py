"""A real cluster for tests: daemons on loopback, in a folder of the test's own,
ports from the kernel, everything ended with it. And a tiny job for it.
"""

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

# Where Bazel put the programs, from the test's working directory.
PROGRAMS = Path(os.environ.get("TROUPE_PROGRAMS", os.getcwd()))
TROUPE = str(PROGRAMS / "clients/cli/troupe")

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
    done = subprocess.run([TROUPE, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"troupe {' '.join(arguments)}: {done.stderr}")
    return done.stdout


class RealCluster:
    def __init__(self, folder):
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

    def kill_scheduler(self):
        """kill -9, and waits until it is gone."""
        members = json.loads((self.dir / "pids.json").read_text())["members"]
        pid = next(m["pid"] for m in members if m["name"] == "scheduler")
        os.kill(pid, signal.SIGKILL)
        while self._runs(pid):
            time.sleep(0.001)

    @staticmethod
    def _runs(pid):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state not in "ZX"

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
