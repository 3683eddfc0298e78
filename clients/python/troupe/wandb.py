"""Weights & Biases: a job's steps as they come.

    import troupe, troupe.wandb
    job = troupe.connect().submit("job.yaml")
    troupe.wandb.log(job, project="my-project")
"""

from __future__ import annotations

import importlib
from typing import Any, Optional

from google.protobuf.json_format import MessageToDict

from troupe.errors import TroupeError
from troupe.job import Job, has_ended, state_name
from troupe.metrics import step_numbers
from troupe.proto.status_pb2 import JobStatus, StepRecord


class WandbMissing(TroupeError, ImportError):
    """The package wandb is not installed."""


def log(job: Job, run: Optional[Any] = None, **init: Any) -> JobStatus:
    """Follows a job until it ends, and logs each step to a run of W&B.

    run: the run to log to, which stays open. Without it one is made with
      wandb.init(**init) and finished at the job's end: its name is the job's, its
      id the job's run_id, so that a second call for the same job continues the
      same run behind the steps that it has.
    The run's config gets the resolved job under "troupe", its summary the job's
    state and reason.

    Returns the job's last status, also where the job failed. Raises WandbMissing,
    and what Job.watch raises.
    """
    if run is not None:
        return _follow(job, run, from_step=0)
    try:
        wandb = importlib.import_module("wandb")
    except ImportError:
        raise WandbMissing(
            "troupe.wandb.log needs the package wandb: pip install wandb"
        ) from None
    settings = {"name": job.name, "id": job.known.run_id or None, "resume": "allow"}
    made = wandb.init(**{**settings, **init})
    code = 1
    try:
        # A run's `step` is the next one to be logged; 0 for a new run.
        status = _follow(job, made, from_step=max(int(made.step) - 1, 0))
        code = 0 if state_name(status) == "SUCCEEDED" else 1
        return status
    finally:
        made.finish(exit_code=code)


def _follow(job: Job, run: Any, from_step: int) -> JobStatus:
    has_config = False
    for update in job.watch(from_step=from_step):
        if not has_config:
            has_config = _add_config(job, run)
        if isinstance(update, StepRecord):
            numbers = step_numbers(update)
            number = int(numbers.pop("step"))
            run.log(numbers, step=number)
        elif isinstance(update, JobStatus) and has_ended(update):
            run.summary["state"] = state_name(update)
            run.summary["reason"] = update.reason
    return job.known


def _add_config(job: Job, run: Any) -> bool:
    """The resolved job, once there is a plan."""
    described = job.describe()
    if not described.HasField("plan"):
        return False
    resolved = MessageToDict(described.plan.job, preserving_proto_field_name=True)
    run.config.update({"troupe": resolved, "troupe_job": job.id}, allow_val_change=True)
    return True
