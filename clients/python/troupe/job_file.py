"""A job as people write it, onto JobSpec: what clients/job_file does in C++.

The scheduler checks what a job means. Here only its form is checked, and done
what can be done on this machine alone: relative paths become absolute, and the
text of `model.graph` is read, since a job carries it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional, Union

from troupe.errors import JobRefused
from troupe.fill_message import Positions, fill_field, fill_message
from troupe.job_tree import node_of, read_yaml
from troupe.proto.job_pb2 import JobSpec

JobLike = Union[JobSpec, Mapping[str, Any], str, "os.PathLike[str]"]
Overrides = Mapping[str, Any]

GRAPH_BYTES_MAX = 1 << 20

# Paths as the workers see them.
_PATHS = (
    "data.tokens",
    "data.validation",
    "model.hf",
    "model.graph",
    "checkpoint.directory",
    "checkpoint.resume",
    "metrics.directory",
    "metrics.tensorboard",
)
_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9_-]*:")
_FIELD = re.compile(r"([a-z_][a-z0-9_]*(?:\[[0-9]+\])?(?:\.[a-z0-9_]+(?:\[[0-9]+\])?)*)([: ])")


@dataclass
class LoadedJob:
    """A job that can be sent, and where its fields stand."""

    spec: JobSpec
    path: str = ""  # of the job file; empty: there is none
    positions: Positions = field(default_factory=dict)

    @property
    def needs_program(self) -> bool:
        """Whether `troupe` has to read files: a Hugging Face directory, or the sizes
        of token files, of which it makes steps."""
        reads_model = self.spec.model.hf and not self.spec.model.architecture
        counts_steps = self.spec.training.HasField("epochs") or self.spec.evaluate
        return bool(reads_model or counts_steps)

    def locate(self, refused: JobRefused) -> JobRefused:
        """Puts the place in the job file in front of a scheduler's message that
        begins with a field: "parallelism.data: 3 does not divide ..."."""
        message = str(refused)
        match = _FIELD.match(message)
        if not self.path or match is None:
            return refused
        nearest = match[1]
        if nearest.split(".")[0].split("[")[0] not in JobSpec.DESCRIPTOR.fields_by_name:
            return refused
        # "data loader failed" begins with a word, not with a path.
        if match[2] == " " and "." not in nearest:
            return refused
        if nearest in self.positions and not self.positions[nearest]:
            return refused  # an override: the path says where
        while nearest and not self.positions.get(nearest):
            nearest = nearest[: max(nearest.rfind("."), nearest.rfind("["), 0)]
        where = self.positions.get(nearest) or self.path
        return JobRefused(f"{where}: {message}", refused.code)


def load_job(job: JobLike, overrides: Optional[Overrides] = None) -> LoadedJob:
    """The job of a file's path, a dict or a message. Raises JobRefused.

    Relative paths start from the job file's folder; those of a dict and of
    `overrides`, which maps "optimizer.lr" to a value, from the current one. In a
    message they stay as they are.
    """
    if isinstance(job, JobSpec):
        loaded = LoadedJob(JobSpec())
        loaded.spec.CopyFrom(job)
        folder = None
    elif isinstance(job, Mapping):
        loaded = LoadedJob(JobSpec())
        fill_message(node_of(job), loaded.spec, loaded.positions)
        folder = Path.cwd()
    elif isinstance(job, (str, os.PathLike)):
        path = Path(job)
        loaded = LoadedJob(JobSpec(), str(path))
        fill_message(read_yaml(path), loaded.spec, loaded.positions)
        folder = (Path.cwd() / path).parent
    else:
        raise JobRefused(
            f"a job is a file's path, a dict or a JobSpec, not a {type(job).__name__}"
        )
    for path_of_field, value in (overrides or {}).items():
        fill_field(path_of_field, value, loaded.spec, loaded.positions)
    overridden = set(overrides or {})
    _make_paths_absolute(loaded.spec, folder, overridden)
    _read_graph(loaded)
    return loaded


def _make_paths_absolute(
    spec: JobSpec, folder: Optional[Path], overridden: set[str]
) -> None:
    for path in _PATHS:
        section_name, name = path.split(".")
        if not spec.HasField(section_name):
            continue
        base = Path.cwd() if path in overridden else folder
        section = getattr(spec, section_name)
        if path == "checkpoint.resume" and section.resume in ("latest", "auto"):
            continue
        _make_absolute(section, name, base)
    base = Path.cwd() if "data.sources" in overridden else folder
    for source in spec.data.sources:
        _make_absolute(source, "tokens", base)


def _make_absolute(section: Any, name: str, base: Optional[Path]) -> None:
    value = getattr(section, name)
    if not value or base is None or os.path.isabs(value) or _ROOT.match(value):
        return
    setattr(section, name, os.path.normpath(base / value))


def _read_graph(loaded: LoadedJob) -> None:
    model = loaded.spec.model
    if not model.graph or model.HasField("graph_text"):
        return
    try:
        with open(model.graph, "rb") as file:
            data = file.read(GRAPH_BYTES_MAX + 1)
        text = data.decode("utf-8")
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        reason = "is no UTF-8 text"
    else:
        if len(data) > GRAPH_BYTES_MAX:
            reason = f"has more than {GRAPH_BYTES_MAX} bytes"
        elif not text or "\0" in text:
            reason = "is empty, or no text"
        else:
            model.graph_text = text
            return
    raise loaded.locate(JobRefused(f"model.graph: {model.graph}: {reason}"))
