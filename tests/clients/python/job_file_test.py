"""From job files, dicts and overrides to messages, without a cluster."""

import os
import tempfile
import unittest
from pathlib import Path

import troupe
from troupe.fill_message import field_paths, set_fields
from troupe.proto.job_pb2 import JobSpec


_LISTS_OF_SECTIONS = (
    "data.sources.",
    "model.experts.measured.",
    "optimizer.groups.",
    "parallelism.strategies.",
)


class JobFileTest(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(made.cleanup)
        self.folder = Path(made.name)

    def load(self, text, overrides=None):
        self.path = self.folder / "job.yaml"
        self.path.write_text(text)
        return troupe.load_job(self.path, overrides).spec

    def refused(self, job, *messages, overrides=None):
        """Refused with these words; of a text, at "LINE:COLUMN"."""
        with self.assertRaises(troupe.JobRefused) as caught:
            if isinstance(job, str):
                self.load(job, overrides)
            else:
                troupe.load_job(job, overrides)
        for message in messages:
            self.assertIn(message, str(caught.exception))
        return str(caught.exception)


class Mixes(JobFileTest):
    def test_the_list_is_short_for_sources(self):
        spec = self.load("data: [{tokens: a.tokens, weight: 0.7}, {tokens: /b}]\n")
        self.assertEqual(
            [source.tokens for source in spec.data.sources],
            [str(self.folder / "a.tokens"), "/b"],
        )
        self.assertEqual(spec.data.sources[0].weight, 0.7)
        spec = troupe.load_job({"data": [{"tokens": "/a"}]}).spec
        self.assertEqual(len(spec.data.sources), 1)
        self.refused("data: [{tokns: a}]\n", "1:9", "data.sources[0].tokns")

    def test_epochs_need_the_program(self):
        self.assertTrue(troupe.load_job({"training": {"epochs": 2}}).needs_program)
        self.assertFalse(troupe.load_job({"training": {"steps": 2}}).needs_program)


class Scalars(JobFileTest):
    def test_mean_what_the_field_wants(self):
        spec = self.load(
            "name: 7\n"
            "optimizer: {lr: 1e-3, nesterov: True, betas: [0.9, .99]}\n"
            "training: {steps: +10, seed: 18446744073709551615, precision: no}\n"
            "recovery: {every: 5}\n"
        )
        self.assertEqual(spec.name, "7")
        self.assertEqual(spec.optimizer.lr, 1e-3)  # YAML 1.1 has it for a text
        self.assertEqual(list(spec.optimizer.betas), [0.9, 0.99])
        self.assertTrue(spec.optimizer.nesterov)
        self.assertEqual(spec.training.steps, 10)
        self.assertEqual(spec.training.seed, 2**64 - 1)
        self.assertEqual(spec.training.precision, "no")  # YAML 1.1: false
        self.assertEqual(spec.recovery.every, "5")

    def test_of_the_wrong_kind_are_refused_with_their_place(self):
        for value, words in {
            '"200"': 'expected an integer, found the text "200"',
            "3.5": "expected an integer, found the number 3.5",
            "2.0": "expected an integer, found the number 2.0",
            "many": 'expected an integer, found the text "many"',
            "[1]": "expected an integer, found a list",
            "{a: 1}": "expected an integer, found a section with fields of its own",
            "": "expected an integer, found nothing",
            "9223372036854775808": "expected an integer up to 9223372036854775807",
            "!!str 7": 'expected an integer, found the text "7"',
        }.items():
            said = self.refused(f"training:\n  steps: {value}\n", words)
            self.assertIn(f"{self.path}:2:", said)
            self.assertIn(": training.steps: ", said)
        self.refused("training: {seed: -1}", "expected an integer from 0 on")
        self.refused("optimizer: {nesterov: yes}", "expected true or false")
        for value in ("1_000", "nan", ".inf", "inf", "0x10"):
            self.refused(f"optimizer: {{lr: {value}}}", "number")

    def test_of_python(self):
        import numpy

        spec = troupe.load_job(
            {
                "optimizer": {"lr": numpy.float32(0.5), "betas": (0, 1)},
                "training": {"steps": numpy.int64(3), "dropout": 1, "seed": None},
                "data": {"tokens": Path("/a") / "b"},
            }
        ).spec
        self.assertEqual(spec.optimizer.lr, 0.5)
        self.assertEqual(list(spec.optimizer.betas), [0, 1])
        self.assertEqual(spec.training.steps, 3)
        self.assertEqual(spec.training.dropout, 1.0)
        self.assertFalse(spec.training.HasField("seed"))
        self.assertEqual(spec.data.tokens, "/a/b")
        for value in (True, 2.0, "3", object(), b"3", {3: 4}):
            self.refused({"training": {"steps": value}}, "expected an integer" if isinstance(
                value, (bool, float, str)) else "")
        self.refused({"optimizer": {"lr": float("nan")}}, "optimizer.lr: expected a finite")
        self.refused({3: 4}, "expected a field's name, found 3")
        self.refused({"training": {"steps": object()}}, "found a object")
        self.refused(7, "not a int")


class Shapes(JobFileTest):
    def test_of_sections_and_lists(self):
        spec = self.load(
            "memory: {recompute: full}\n"
            "training: {freeze: '*.wte.*'}\n"
            "recovery:\n"
            "elastic: {}\n"
            "parallelism:\n"
            "  strategies:\n"
            "  - {units: embedding, tensor: 2}\n"
            "  - {stage: 1, batch: 2}\n"
        )
        self.assertEqual(spec.memory.recompute.mode, "full")
        self.assertEqual(list(spec.training.freeze), ["*.wte.*"])
        self.assertFalse(spec.HasField("recovery"))
        self.assertTrue(spec.HasField("elastic"))
        self.assertEqual(spec.parallelism.strategies[0].units, ["embedding"])
        self.assertEqual(spec.parallelism.strategies[1].stage, 1)
        self.assertEqual(self.load("memory: auto").memory.mode, "auto")
        self.refused("training: 7", ':1:11: training: expected fields, as in "steps: ..."')
        self.refused("7", 'expected fields, as in "name: ...", found the number 7')
        self.refused("parallelism: {strategies: {stage: 1}}", "expected a list, as in strateg")

    def test_anchors_mean_their_value(self):
        spec = self.load("training: &t {steps: 3}\ndata: {tokens: &x /a}\nname: *x\n")
        self.assertEqual(spec.name, "/a")

    def test_unknown_fields_are_refused_by_name(self):
        self.refused(
            "name: a\nparallelism:\n  dta: 2\n",
            "job.yaml:3:3: parallelism.dta: no such field; did you mean data?",
        )
        self.refused({"lr": 1}, "lr: no such field; did you mean optimizer.lr?")
        self.refused({"zzz": 1}, "zzz: no such field; there are name, model, data")
        self.refused("training: {<<: {steps: 1}}", "training.<<: no such field")

    def test_what_no_job_file_needs_is_refused(self):
        self.refused("", "the job file is empty")
        self.refused("name: a\nname: b\n", ":2:1: name is there twice; the first is in line 1")
        self.refused("name: !foo a\n", "the tag !foo means nothing")
        self.refused("name: a\n---\nname: b\n", "not YAML")
        self.refused("name: [a\n", "job.yaml:2:1: not YAML")
        self.refused("name: " + "[" * 40 + "]" * 40, "nested deeper than 32")
        self.refused("name: " + "[" * 20000, "job.yaml")
        self.refused("a: &a [1, 1]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 20)}]\n"
            for i in range(8)), "more than 20000 values")
        self.refused("a: &a [*a]\n", "job.yaml")
        self.refused("name: " + "a" * (1 << 20), "more than 1048576 bytes")
        self.path.write_bytes(b"name: \xff")
        with self.assertRaisesRegex(troupe.JobRefused, "this is not UTF-8 text"):
            troupe.load_job(self.path)
        with self.assertRaisesRegex(troupe.JobRefused, "nowhere.yaml: cannot open the job"):
            troupe.load_job(self.folder / "nowhere.yaml")
        with self.assertRaisesRegex(troupe.JobRefused, "cannot open the job file: Is a dir"):
            troupe.load_job(self.folder)


class Overriding(JobFileTest):
    def test_sets_and_clears_fields(self):
        spec = self.load(
            "training: {steps: 3, seed: 4}\n",
            {"optimizer.lr": 1e-3, "training.seed": None, "elastic": {}, "name": "x"},
        )
        self.assertEqual(spec.optimizer.lr, 1e-3)
        self.assertEqual(spec.training.steps, 3)
        self.assertFalse(spec.training.HasField("seed"))
        self.assertTrue(spec.HasField("elastic"))
        self.assertEqual(spec.name, "x")
        message = JobSpec(name="message")
        self.assertEqual(troupe.load_job(message, {"name": "x"}).spec.name, "x")
        self.assertEqual(message.name, "message")

    def test_of_what_is_not_there(self):
        self.refused({}, "training.stepz: no such field", overrides={"training.stepz": 1})
        self.refused({}, "name has no fields", overrides={"name.x": 1})
        self.refused(
            {}, "training.steps: expected an integer", overrides={"training.steps": "3"}
        )


class Paths(JobFileTest):
    def test_start_from_the_file_and_in_overrides_from_here(self):
        spec = self.load(
            "data: {tokens: ../a.tokens}\n"
            "checkpoint: {directory: runs:x, resume: latest}\n",
        )
        self.assertEqual(spec.data.tokens, str(self.folder.parent / "a.tokens"))
        self.assertEqual(spec.checkpoint.directory, "runs:x")
        self.assertEqual(spec.checkpoint.resume, "latest")
        spec = self.load("checkpoint: {directory: runs:x, resume: auto}\n")
        self.assertEqual(spec.checkpoint.resume, "auto")
        spec = self.load("name: x", {"data.tokens": "a", "checkpoint.resume": "./runs:x"})
        self.assertEqual(spec.data.tokens, os.path.join(os.getcwd(), "a"))
        self.assertEqual(spec.checkpoint.resume, os.path.join(os.getcwd(), "runs:x"))
        spec = self.load("metrics: {directory: '', tensorboard: ../tb}\n")
        self.assertTrue(spec.metrics.HasField("directory"))
        self.assertEqual(spec.metrics.directory, "")
        self.assertEqual(spec.metrics.tensorboard, str(self.folder.parent / "tb"))
        self.assertEqual(
            troupe.load_job({"data": {"tokens": "a"}}).spec.data.tokens,
            os.path.join(os.getcwd(), "a"),
        )

    def test_a_graph_is_read(self):
        (self.folder / "model.graph").write_text("units")
        spec = self.load("model: {graph: model.graph}")
        self.assertEqual(spec.model.graph, str(self.folder / "model.graph"))
        self.assertEqual(spec.model.graph_text, "units")
        self.refused("model: {graph: other}", "job.yaml:1:16: model.graph: ", "cannot be read")
        (self.folder / "model.graph").write_bytes(b"\xff")
        self.refused("model: {graph: model.graph}", "is no UTF-8 text")


class SetFields(unittest.TestCase):
    def test_names_all_that_are_set(self):
        spec = troupe.load_job(
            {"training": {"steps": 1}, "parallelism": {"strategies": [{"stage": 0}]}}
        ).spec
        self.assertEqual(
            set_fields(spec),
            [
                "parallelism",
                "parallelism.strategies",
                "parallelism.strategies.stage",
                "training",
                "training.steps",
            ],
        )

    def test_every_field_can_be_overridden(self):
        paths = field_paths(JobSpec.DESCRIPTOR)
        self.assertGreater(len(paths), 100)
        for path in paths:
            for value in (1, "x", True):
                try:
                    made = troupe.load_job({}, {path: value}).spec
                except troupe.JobRefused:
                    continue
                self.assertIn(path, set_fields(made))
                break
            else:
                # Lists of sections, and what reads a file.
                self.assertTrue(
                    path.startswith(_LISTS_OF_SECTIONS)
                    or path in ("model.hf", "model.graph"),
                    path,
                )


if __name__ == "__main__":
    unittest.main()
