"""A cluster: its jobs, its workers, and plans for it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Callable, Literal, Optional, Type, Union

from google.protobuf.message import Message

from troupe import errors
from troupe.connection import (
    CALL_SECONDS,
    PLAN_SECONDS,
    Connection,
    Response,
    as_refusal,
)
from troupe.endpoints import Endpoints, find_scheduler
from troupe.fill_message import set_fields
from troupe.job import Job
from troupe.job_file import JobLike, LoadedJob, Overrides, load_job
from troupe.program import plan_with_program, submit_with_program
from troupe.proto import scheduler_pb2
from troupe.proto.explanation_pb2 import Explanation
from troupe.proto.plan_pb2 import Plan
from troupe.proto.status_pb2 import WorkerStatus

PathLike = Union[str, "os.PathLike[str]"]
Insecure = Union[bool, Literal["anywhere"]]


def connect(
    directory: Optional[PathLike] = None,
    *,
    address: Optional[str] = None,
    certificates: Optional[PathLike] = None,
    insecure: Insecure = False,
) -> Cluster:
    """Connects to a cluster, as the commands of `troupe` do.

    directory: the folder of a cluster (`troupe up --dir`). Without it and
      without `address`: the environment's TROUPE_DIR.
    address: the scheduler's "HOST:PORT", in place of what the folder says.
    certificates: a folder with authority.pem, certificate.pem and key.pem of a
      client; trust/client in the cluster's folder where it is left out.
    insecure: True for a scheduler without TLS on this machine, "anywhere" for
      one on another machine.

    Raises ClusterNotFound, Unavailable or NotTrusted.
    """
    cluster = Cluster(
        None if directory is None else Path(directory).expanduser(),
        address,
        None if certificates is None else Path(certificates).expanduser(),
        insecure,
    )
    cluster.connection()
    return cluster


class Cluster:
    """A connection to a scheduler, made by `connect`. Threads may share it.

    Where the scheduler was started again the next call finds it, also at another
    port. All methods raise the errors of troupe.errors.
    """

    def __init__(
        self,
        directory: Optional[Path],
        address: Optional[str],
        certificates: Optional[Path],
        insecure: Insecure,
    ) -> None:
        self._directory = directory
        self._address = address
        self._certificates = certificates
        self._insecure = insecure
        self._lock = threading.Lock()
        self._connection: Optional[Connection] = None

    def __repr__(self) -> str:
        connection = self._connection
        return f"<troupe.Cluster {connection.address if connection else 'not connected'}>"

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; the next call makes another one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    # Jobs.

    def submit(self, job: JobLike, overrides: Optional[Overrides] = None) -> Job:
        """Queues a job; takes as long as planning does.

        job: the path of a job file, a dict with its fields, or a JobSpec.
        overrides: {"optimizer.lr": 1e-3}; None restores a field's default.

        Raises JobRefused. After Unavailable or TimedOut the scheduler may have
        accepted the job nevertheless; jobs() says so. A job with model.hf is
        submitted by the program `troupe`, which must be on PATH.
        """
        loaded = load_job(job, overrides)
        if loaded.needs_program:
            return self.job(submit_with_program(loaded, self._flags()))
        request = scheduler_pb2.SubmitJobRequest(
            job=loaded.spec, fields=set_fields(loaded.spec)
        )
        connection = self.connection()
        try:
            answer = connection.call(
                "SubmitJob", request, scheduler_pb2.SubmitJobResponse, PLAN_SECONDS
            )
        except errors.Unavailable:
            self.forget(connection)
            raise
        except errors.CallFailed as error:
            raise _located(loaded.locate, as_refusal(error)) from None
        return Job(self, answer.status)

    def jobs(self) -> list[Job]:
        """All jobs that the scheduler knows, newest first."""
        answer = self.call(
            "ListJobs", scheduler_pb2.ListJobsRequest(), scheduler_pb2.ListJobsResponse
        )
        return [Job(self, status) for status in answer.jobs]

    def job(self, which: Union[int, str] = "latest") -> Job:
        """A job by its number, by its name (the newest of that name), or "latest".

        The latest is the newest that no command made for its own use, as
        `troupe verify` does.
        """
        found = [
            job
            for job in self.jobs()
            if (
                not job.known.made_by
                if which == "latest"
                else which in (job.id, str(job.id), job.name)
            )
        ]
        if not found:
            raise errors.NotFound(f"no job is called {which}; jobs() lists those there are")
        return max(found, key=lambda job: job.id)

    def plan(
        self,
        job: JobLike,
        overrides: Optional[Overrides] = None,
        *,
        programs: bool = False,
    ) -> Plan:
        """Compiles a job for the workers that are there now, and runs nothing.

        plan.prediction has the step's time, tokens per second and the memory of
        each rank; plan.job is the job with every default filled in. `programs`
        includes what each rank runs. Raises JobRefused.
        """
        return self._plan(job, overrides, programs=programs, explain=False).plan

    def explain(
        self, job: JobLike, overrides: Optional[Overrides] = None
    ) -> Explanation:
        """Compares the ways in which the job's ranks could share its work, as
        `troupe plan --explain` does. Raises JobRefused."""
        return self._plan(job, overrides, programs=False, explain=True).explanation

    def _plan(
        self,
        job: JobLike,
        overrides: Optional[Overrides],
        *,
        programs: bool,
        explain: bool,
    ) -> scheduler_pb2.PlanJobResponse:
        loaded = load_job(job, overrides)
        if loaded.needs_program:
            return self._plan_with_program(loaded, programs, explain)
        request = scheduler_pb2.PlanJobRequest(
            job=loaded.spec,
            programs=programs,
            explain=explain,
            fields=set_fields(loaded.spec),
        )
        try:
            return self.call(
                "PlanJob", request, scheduler_pb2.PlanJobResponse, PLAN_SECONDS
            )
        except errors.CallFailed as error:
            raise _located(loaded.locate, as_refusal(error)) from None

    def _plan_with_program(
        self, loaded: LoadedJob, programs: bool, explain: bool
    ) -> scheduler_pb2.PlanJobResponse:
        answer = scheduler_pb2.PlanJobResponse()
        if explain:
            into: Message = answer.explanation
            plan_with_program(loaded, self._flags(), into, "--explain")
        else:
            options = ["--programs"] if programs else []
            plan_with_program(loaded, self._flags(), answer.plan, *options)
        return answer

    def _flags(self) -> list[str]:
        """What says to a command of `troupe` which cluster this is."""
        connection = self.connection()
        flags = ["--scheduler", connection.address]
        if connection.certificates is None:
            return [*flags, *["--insecure"] * (2 if self._insecure == "anywhere" else 1)]
        return [*flags, "--certificates", str(connection.certificates)]

    # Workers.

    def workers(self) -> list[WorkerStatus]:
        """All workers that the scheduler knows, those that left among them."""
        answer = self.call(
            "ListWorkers",
            scheduler_pb2.ListWorkersRequest(),
            scheduler_pb2.ListWorkersResponse,
        )
        return list(answer.workers)

    def cordon(self, name: str, why: str = "") -> WorkerStatus:
        """Takes a worker out of service: it gets no rank, and the rank that it has
        continues. Raises NotFound."""
        return self._cordon(name, True, why)

    def uncordon(self, name: str) -> WorkerStatus:
        """Puts a worker back into service, and forgets its failures."""
        return self._cordon(name, False, "")

    def _cordon(self, name: str, cordon: bool, why: str) -> WorkerStatus:
        request = scheduler_pb2.CordonWorkerRequest(name=name, cordon=cordon, why=why)
        response = scheduler_pb2.CordonWorkerResponse
        return self.call("CordonWorker", request, response).worker

    # The connection, for this package.

    def connection(self) -> Connection:
        """The one there is, else a new one to the scheduler, wherever it is now."""
        with self._lock:
            if self._connection is None:
                self._connection = Connection.open(
                    self._find(), insecure=self._insecure == "anywhere"
                )
            return self._connection

    def _find(self) -> Endpoints:
        found = find_scheduler(self._directory, self._address, self._certificates)
        if not self._insecure:
            return found
        return Endpoints(found.address, None, insecure=True)

    def forget(self, connection: Connection) -> None:
        """Lets go of a connection that was lost, unless another one is there."""
        with self._lock:
            if self._connection is connection:
                self._connection = None
        connection.close()

    def call(
        self,
        method: str,
        request: Message,
        response: Type[Response],
        seconds: float = CALL_SECONDS,
    ) -> Response:
        """A call that may be made twice: where the connection was lost it is made
        again, once, to the scheduler that is found then."""
        connection = self.connection()
        try:
            return connection.call(method, request, response, seconds)
        except errors.Unavailable:
            self.forget(connection)
        return self.connection().call(method, request, response, seconds)


def _located(
    locate: Callable[[errors.JobRefused], errors.JobRefused], error: errors.TroupeError
) -> errors.TroupeError:
    return locate(error) if isinstance(error, errors.JobRefused) else error
