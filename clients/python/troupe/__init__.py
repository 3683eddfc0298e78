"""Troupe from Python: submit training jobs, follow them, plot them.

    import troupe

    cluster = troupe.connect()                       # TROUPE_DIR
    job = cluster.submit("job.yaml", {"optimizer.lr": 1e-3})
    for update in job.watch():
        if isinstance(update, troupe.StepRecord):
            print(update.step, update.loss)
    job.metrics().loss.plot()

Messages are those of proto/*.proto, as troupe.proto.NAME_pb2.
"""

from troupe.cluster import Cluster, connect
from troupe.errors import (
    CallFailed,
    ClusterNotFound,
    JobFailed,
    JobRefused,
    NotFound,
    NotTrusted,
    TimedOut,
    TroupeError,
    Unavailable,
)
from troupe.job import Job, Update, has_ended, state_name
from troupe.job_file import load_job
from troupe.metrics import step_numbers
from troupe.proto.job_pb2 import JobSpec
from troupe.proto.plan_pb2 import Plan
from troupe.proto.status_pb2 import (
    JobDescription,
    JobEvent,
    JobStatus,
    StepRecord,
    WorkerStatus,
)

__all__ = [
    "CallFailed",
    "Cluster",
    "ClusterNotFound",
    "Job",
    "JobDescription",
    "JobEvent",
    "JobFailed",
    "JobRefused",
    "JobSpec",
    "JobStatus",
    "NotFound",
    "NotTrusted",
    "Plan",
    "StepRecord",
    "TimedOut",
    "TroupeError",
    "Unavailable",
    "Update",
    "WorkerStatus",
    "connect",
    "has_ended",
    "load_job",
    "state_name",
    "step_numbers",
]
