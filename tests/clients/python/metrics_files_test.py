"""The files with a row for each step that a job leaves, read as their users do:
with json, pandas and, where it is installed, TensorBoard. Another interpreter
that has the package tensorboard may be named by TROUPE_TENSORBOARD_PYTHON.
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import pandas
import troupe
from real_cluster import ClusterTest, RealCluster, temporary_folder

READER = Path("tests/oracle/read_event_files.py").absolute()


def setUpModule():
    global real, cluster
    folder = temporary_folder()
    unittest.addModuleCleanup(folder.cleanup)
    real = RealCluster(folder.name)
    unittest.addModuleCleanup(real.down)
    cluster = troupe.connect(real.dir)


def tensorboard_python():
    """An interpreter that has TensorBoard, or None."""
    python = os.environ.get("TROUPE_TENSORBOARD_PYTHON", sys.executable)
    # Without the paths of this test, which are for its own interpreter.
    found = subprocess.run(
        [python, "-c", "import tensorboard.backend.event_processing.event_accumulator"],
        capture_output=True,
        env=without_paths(),
    )
    return python if found.returncode == 0 else None


def without_paths():
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}


class MetricsFiles(ClusterTest):
    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def train(self, **training):
        """Trains the tiny job, or goes on with it; its steps as the client has them."""
        job = real.job(**training)
        job["checkpoint"] = {"directory": self.folder, "resume": "auto"}
        job["metrics"] = {"tensorboard": self.folder / "tb"}
        submitted = cluster.submit(job)
        submitted.wait()
        return submitted.metrics()

    def rows(self):
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def test_hold_what_the_client_is_told(self):
        known = self.train()
        rows = self.rows()
        self.assertEqual([row["step"] for row in rows], list(range(1, 21)))
        table = pandas.read_csv(
            self.folder / "metrics.csv", float_precision="round_trip"
        ).set_index("step")
        same = ["loss", "grad_norm", "learning_rate", "samples_consumed"]
        pandas.testing.assert_frame_equal(table[same], known[same], check_exact=True)
        for row in rows:
            for name, value in row.items():
                if name != "step":
                    self.assertEqual(table.loc[row["step"], name], value, name)
        validated = table["validation_loss"].dropna()
        self.assertEqual(list(validated.index), [10, 20])
        self.assertEqual(list(validated), list(known["validation_loss"].dropna()))

    def test_go_on_with_the_job(self):
        whole = self.train(stop_after=12)
        more = self.train()
        self.assertEqual(list(more.index), list(range(13, 21)))
        losses = list(whole["loss"]) + list(more["loss"])
        self.assertEqual([row["loss"] for row in self.rows()], losses)
        self.assertFalse((self.folder / "metrics.jsonl.1").exists())
        self.assertEqual(len(list((self.folder / "tb").glob("*tfevents*"))), 2)

    def test_are_read_by_tensorboard(self):
        python = tensorboard_python()
        if python is None:
            self.skipTest("the package tensorboard is not installed")
        self.train()
        # Without its checkpoint it begins anew: what was said before is void.
        for checkpoint in self.folder.glob("step-*"):
            checkpoint.rename(self.folder / ("old-" + checkpoint.name))
        known = self.train(seed=8)
        read = subprocess.run(
            [python, READER, self.folder / "tb"],
            stdout=subprocess.PIPE,
            check=True,
            env=without_paths(),
        )
        curves = json.loads(read.stdout)
        for tag in ("loss", "grad_norm", "learning_rate"):
            steps = [step for step, _ in curves[tag]]
            self.assertEqual(steps, list(range(1, 21)))
            for (_, value), expected in zip(curves[tag], known[tag]):
                self.assertAlmostEqual(value, expected, delta=1e-6 * abs(expected))
        self.assertEqual([step for step, _ in curves["validation_loss"]], [10, 20])
        self.assertTrue((self.folder / "metrics.jsonl.1").exists())


if __name__ == "__main__":
    unittest.main()
