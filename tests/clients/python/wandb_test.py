"""Steps to Weights & Biases, with a module that stands in its place; and tables,
where pandas is missing.
"""

import sys
import types
import unittest
from unittest import mock

import troupe
import troupe.wandb
from real_cluster import ClusterTest, RealCluster, temporary_folder


def setUpModule():
    global real, cluster
    folder = temporary_folder()
    unittest.addModuleCleanup(folder.cleanup)
    real = RealCluster(folder.name)
    unittest.addModuleCleanup(real.down)
    cluster = troupe.connect(real.dir)


class FakeRun:
    """Keeps what it is given, and its steps ascend, as W&B's do."""

    def __init__(self, step=0):
        self.step = step
        self.rows = []
        self.config_updates = 0
        self.summary = {}
        self.exit_code = None
        config = mock.Mock()
        config.update = self._update
        self.config, self._config = config, {}

    def _update(self, values, allow_val_change):
        assert allow_val_change
        self.config_updates += 1
        self._config.update(values)

    def log(self, numbers, step):
        assert step >= self.step, "W&B drops steps that it has"
        assert all(isinstance(n, (int, float)) for n in numbers.values())
        self.step = step + 1
        self.rows.append((step, numbers))

    def finish(self, exit_code):
        self.exit_code = exit_code


class Log(ClusterTest):
    def setUp(self):
        self.inits = []
        fake = types.ModuleType("wandb")
        fake.init = self.init
        patch = mock.patch.dict(sys.modules, wandb=fake)
        patch.start()
        self.addCleanup(patch.stop)
        self.run_made = FakeRun()

    def init(self, **settings):
        self.inits.append(settings)
        return self.run_made

    def test_makes_a_run_of_the_jobs_name_and_id(self):
        job = cluster.submit(real.job())
        status = troupe.wandb.log(job, project="p", name="mine")
        run = self.run_made
        self.assertEqual(troupe.state_name(status), "SUCCEEDED")
        self.assertEqual(
            self.inits,
            [dict(name="mine", id=status.run_id, resume="allow", project="p")],
        )
        self.assertEqual([step for step, _ in run.rows], list(range(1, 21)))
        steps = job.describe().steps
        self.assertEqual([row["loss"] for _, row in run.rows], [s.loss for s in steps])
        self.assertIn("validation_loss", run.rows[9][1])
        self.assertNotIn("validation_loss", run.rows[8][1])
        self.assertEqual(run._config["troupe"]["training"]["global_batch_size"], 8)
        self.assertEqual(run._config["troupe_job"], job.id)
        self.assertEqual(run.config_updates, 1)
        self.assertEqual(run.summary, {"state": "SUCCEEDED", "reason": ""})
        self.assertEqual(run.exit_code, 0)

    def test_continues_a_run_behind_its_steps(self):
        job = cluster.submit(real.job())
        job.wait()
        self.run_made = FakeRun(step=16)  # it has 1 to 15
        troupe.wandb.log(job)
        self.assertEqual([step for step, _ in self.run_made.rows], [16, 17, 18, 19, 20])

    def test_a_run_of_the_caller_stays_open(self):
        run = FakeRun()
        troupe.wandb.log(cluster.submit(real.job(steps=3)), run)
        self.assertEqual(len(run.rows), 3)
        self.assertIsNone(run.exit_code)
        self.assertEqual(self.inits, [])

    def test_a_job_that_does_not_succeed_ends_its_run_so(self):
        job = cluster.submit(real.job(steps=10_000_000))
        job.cancel()
        status = troupe.wandb.log(job)
        self.assertEqual(troupe.state_name(status), "CANCELLED")
        self.assertEqual(self.run_made.exit_code, 1)
        self.assertEqual(self.run_made.summary["state"], "CANCELLED")


class Missing(ClusterTest):
    def test_packages_that_are_optional_are_named(self):
        job = cluster.submit(real.job(steps=1))
        with mock.patch.dict(sys.modules, wandb=None):
            with self.assertRaisesRegex(ImportError, "pip install wandb"):
                troupe.wandb.log(job)
        job.wait()
        with mock.patch.dict(sys.modules, pandas=None):
            with self.assertRaisesRegex(ImportError, "pip install pandas"):
                job.metrics()


if __name__ == "__main__":
    unittest.main()
