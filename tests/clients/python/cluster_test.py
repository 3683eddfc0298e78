"""The package on a real cluster: submitting, following, plans, refusals."""

import math
import os
import unittest
from pathlib import Path
from unittest import mock

import troupe
from real_cluster import TROUPE, ClusterTest, RealCluster, run_troupe, temporary_folder
from troupe.proto.cluster_pb2 import WorkerDescription

ENDLESS = 10_000_000


def setUpModule():
    global folder, real, cluster
    folder = temporary_folder()
    unittest.addModuleCleanup(folder.cleanup)
    real = RealCluster(folder.name)
    unittest.addModuleCleanup(real.down)
    cluster = troupe.connect(real.dir)


def steps_of(updates):
    return [u.step for u in updates if isinstance(u, troupe.StepRecord)]


class Jobs(ClusterTest):
    def endless(self):
        """A job that ends with the test, so that the workers are free for others."""
        job = cluster.submit(real.job(steps=ENDLESS))
        self.addCleanup(job.cancel)
        return job

    def test_runs_a_job_and_tells_all_of_it_in_order(self):
        job = cluster.submit(real.job())
        updates = list(job.watch())
        self.assertEqual(steps_of(updates), list(range(1, 21)))
        events = [u.text for u in updates if isinstance(u, troupe.JobEvent)]
        self.assertEqual(events[0], "queued")
        self.assertEqual(events[-1], "succeeded")
        self.assertIsInstance(updates[-1], troupe.JobStatus)
        self.assertEqual(troupe.state_name(updates[-1]), "SUCCEEDED")
        self.assertEqual(job.wait().steps_done, 20)
        self.assertIn("SUCCEEDED 20/20", repr(job))
        self.assertEqual(steps_of(job.watch(from_step=17)), [18, 19, 20])
        self.assertEqual([s.step for s in job.steps(from_step=18)], [19, 20])

    def test_finds_jobs_by_number_name_and_latest(self):
        named = cluster.submit(real.job(steps=1), {"name": "named"})
        last = cluster.submit(real.job(steps=1))
        self.assertEqual(cluster.job("named").id, named.id)
        self.assertEqual(cluster.job(named.id).name, "named")
        self.assertEqual(cluster.job(str(named.id)).id, named.id)
        self.assertEqual(cluster.job().id, last.id)
        self.assertEqual([j.id for j in cluster.jobs()][:2], [last.id, named.id])
        with self.assertRaisesRegex(troupe.NotFound, "no job is called nobody"):
            cluster.job("nobody")
        last.wait()

    def test_metrics_are_a_table_by_step(self):
        job = cluster.submit(real.job())
        job.wait()
        table = job.metrics()
        self.assertEqual(list(table.index), list(range(1, 21)))
        steps = job.describe().steps
        self.assertEqual(list(table.loss), [step.loss for step in steps])
        self.assertLess(table.loss.iloc[-1], table.loss.iloc[0])
        validated = [step for step, loss in table.validation_loss.items() if loss == loss]
        self.assertEqual(validated, [10, 20])
        self.assertTrue(math.isnan(table.validation_loss[9]))
        self.assertNotIn("routers.entropy", table.columns)  # the model has none

    def test_a_job_file_trains_what_the_dict_and_the_command_train(self):
        path = real.dir / "tiny.yaml"
        lines = ["data: {tokens: tiny.tokens, validation_fraction: 0.1}"]
        for section, value in real.job().items():
            if section == "data":
                continue
            if isinstance(value, dict):
                value = "{%s}" % ", ".join(f"{k}: {v}" for k, v in value.items())
            lines.append(f"{section}: {value}")
        path.write_text("\n".join(lines))
        said = run_troupe("submit", str(path), "--dir", str(real.dir))
        jobs = [
            cluster.job(int(said.split()[1])),
            cluster.submit(path),
            cluster.submit(str(path), {"training.steps": 20}),
            cluster.submit(real.job()),
            cluster.submit(troupe.load_job(path).spec),
        ]
        for job in jobs:
            job.wait()
        described = [job.describe() for job in jobs]
        self.assertEqual(len({d.plan.job.SerializeToString(True) for d in described}), 1)
        self.assertEqual(len({d.status.fingerprint for d in described}), 1)
        self.assertEqual(len({d.steps[-1].loss for d in described}), 1)

    def test_a_hugging_face_model_is_read_by_the_program(self):
        hf = Path(os.environ.get("HF_DIRECTORIES", "tests/oracle/hf")).resolve()
        job = {**real.job(steps=3), "model": {"hf": hf / "gpt2_bare"}}
        job["recovery"] = {}
        with mock.patch.dict(os.environ, TROUPE_PROGRAM="/nowhere"):
            with self.assertRaisesRegex(troupe.JobRefused, "TROUPE_PROGRAM=/nowhere is none"):
                cluster.submit(job)
        with mock.patch.dict(os.environ, TROUPE_PROGRAM=TROUPE):
            plan = cluster.plan(job)
            self.assertEqual(plan.job.model.architecture, "gpt2")
            self.assertGreater(plan.prediction.step_seconds, 0)
            self.assertTrue(cluster.explain(job).ways)
            made = cluster.submit(job, {"name": "7b"})
            self.assertEqual((made.name, made.wait().steps_done), ("7b", 3))
            described = made.describe().plan.job
            self.assertEqual(described.model.hf, str(hf / "gpt2_bare"))
            self.assertTrue(described.HasField("recovery"))
            with self.assertRaisesRegex(
                troupe.JobRefused, "^model.hidden_size: the config.json of model.hf says it"
            ):
                cluster.submit(job, {"model.hidden_size": 3})
            with self.assertRaisesRegex(troupe.JobRefused, "^model.hf: /nowhere"):
                cluster.submit(job, {"model.hf": "/nowhere"})

    def test_cancels(self):
        job = self.endless()
        for _ in job.steps():
            break
        with self.assertRaisesRegex(troupe.TimedOut, "is RUNNING after the given time"):
            job.wait(timeout=0.2)
        self.assertIn(troupe.state_name(job.status()), ("RUNNING",))
        job.cancel()
        with self.assertRaisesRegex(troupe.JobFailed, "is CANCELLED") as caught:
            job.wait()
        self.assertEqual(troupe.state_name(caught.exception.status), "CANCELLED")
        self.assertTrue(troupe.has_ended(job.status()))

    def test_follows_over_restarts_of_the_scheduler(self):
        job = self.endless()
        steps, events = [], []
        restarted = None
        for update in job.watch():
            if isinstance(update, troupe.JobEvent):
                events.append((update.unix_ms, update.text))
            if not isinstance(update, troupe.StepRecord):
                continue
            steps.append(update.step)
            # The stream may be far ahead of `troupe up`, which must be done
            # before the scheduler is killed again, or called.
            if update.step in (50, 90) and restarted is not None:
                restarted.result()
            if update.step in (10, 50):
                restarted = real.restart_scheduler()
                self.addCleanup(restarted.result)
            if update.step == 90:
                job.cancel()
        self.assertGreaterEqual(len(steps), 90)
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.assertEqual(len(events), len(set(events)))
        self.assertEqual(troupe.state_name(job.known), "CANCELLED")
        # The other calls find it as well, wherever it listens now.
        self.assertEqual(cluster.job().id, job.id)

    def test_gives_up_on_a_scheduler_that_does_not_come_back(self):
        job = self.endless()
        next(job.steps())
        following = job.watch(patience=0.5)
        next(following)
        real.kill_scheduler()
        try:
            with self.assertRaisesRegex(troupe.Unavailable, "did not come back within 0.5"):
                list(following)
            with self.assertRaisesRegex(troupe.ClusterNotFound, "is gone"):
                cluster.jobs()
        finally:
            real.up()
        trained = job.describe().status.steps_done
        self.assertGreater(next(job.steps(from_step=trained)).step, trained)
        job.cancel()
        self.assertTrue(troupe.has_ended(list(job.watch())[-1]))


class Refusals(ClusterTest):
    def test_fields_that_are_none(self):
        with self.assertRaisesRegex(
            troupe.JobRefused, "^parallelism.dta: no such field; did you mean data"
        ):
            cluster.submit({**real.job(), "parallelism": {"dta": 2}})

    def test_what_the_scheduler_says(self):
        job = {**real.job(), "parallelism": {"data": 3}}
        with self.assertRaisesRegex(
            troupe.JobRefused, "^parallelism.data: 3 does not divide"
        ) as caught:
            cluster.submit(job)
        self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")
        with self.assertRaisesRegex(troupe.JobRefused, "^parallelism.data: 3 does not"):
            cluster.plan(job)

    def test_what_the_scheduler_says_has_its_place_in_the_job_file(self):
        path = real.dir / "three.yaml"
        path.write_text(
            "name: three\n"
            f"model: {{{', '.join(f'{k}: {v}' for k, v in real.job()['model'].items())}}}\n"
            "data: {tokens: tiny.tokens}\n"
            "training: {steps: 1, global_batch_size: 8, micro_batch_size: 1}\n"
            "optimizer: {lr: 1e-3}\n"
            "parallelism:\n"
            "  data: 3\n"
        )
        with self.assertRaises(troupe.JobRefused) as caught:
            cluster.submit(path)
        self.assertTrue(str(caught.exception).startswith(f"{path}:7:9: parallelism.data: 3"))

    def test_jobs_and_workers_that_are_not_there(self):
        gone = troupe.Job(cluster, troupe.JobStatus(id=999))
        for call in (gone.describe, gone.cancel, gone.status, gone.wait):
            with self.assertRaisesRegex(troupe.NotFound, "999"):
                call()
        with self.assertRaises(troupe.NotFound):
            cluster.cordon("nobody")


class Plans(ClusterTest):
    def test_predicts_without_running(self):
        before = len(cluster.jobs())
        plan = cluster.plan(real.job(), {"parallelism.data": 1})
        self.assertGreater(plan.prediction.step_seconds, 0)
        self.assertEqual(plan.derived.data_parallel_size, 1)
        self.assertEqual(plan.job.optimizer.eps, 1e-8)  # a default, filled in
        self.assertFalse(plan.roles)
        self.assertTrue(cluster.plan(real.job(), programs=True).roles)
        self.assertEqual(len(cluster.jobs()), before)

    def test_compares_ways(self):
        ways = cluster.explain(real.job()).ways
        self.assertTrue(any(way.fields.is_job for way in ways))


class Workers(ClusterTest):
    def test_are_cordoned_by_name(self):
        workers = {w.description.name: w for w in cluster.workers()}
        self.assertEqual(set(workers), {"worker-0", "worker-1"})
        self.assertIsInstance(workers["worker-0"].description, WorkerDescription)
        self.assertTrue(cluster.cordon("worker-1", "its fan is loud").cordoned)
        set_aside = {w.description.name: w.set_aside for w in cluster.workers()}
        self.assertIn("its fan is loud", set_aside["worker-1"])
        self.assertFalse(cluster.uncordon("worker-1").cordoned)


class Environment(ClusterTest):
    def test_names_the_cluster(self):
        os.environ["TROUPE_DIR"] = str(real.dir)
        self.addCleanup(os.environ.pop, "TROUPE_DIR")
        with troupe.connect() as found:
            self.assertEqual(len(found.workers()), 2)


if __name__ == "__main__":
    unittest.main()
