"""One job: following it, what it did, ending it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Optional, Union

from troupe import errors
from troupe.connection import STREAM_SECONDS
from troupe.metrics import metrics_frame
from troupe.proto import scheduler_pb2
from troupe.proto.status_pb2 import (
    JobDescription,
    JobEvent,
    JobState,
    JobStatus,
    StepRecord,
)

if TYPE_CHECKING:
    import pandas

    from troupe.cluster import Cluster

# What a watched job tells.
Update = Union[StepRecord, JobEvent, JobStatus]

# For how long a scheduler that went away is looked for, in seconds.
PATIENCE_SECONDS = 120.0
_LOOK_AFTER_SECONDS = 0.1
_LOOK_AFTER_SECONDS_MAX = 2.0
_NONE_OF_THE_PAST = (1 << 63) - 1

_ENDED = {"SUCCEEDED", "FAILED", "CANCELLED"}


def state_name(status: JobStatus) -> str:
    """ "RUNNING", as the status page says it."""
    return JobState.Name(status.state)


def has_ended(status: JobStatus) -> bool:
    """Whether the job is over, in whatever way."""
    return state_name(status) in _ENDED


class Job:
    """A job of a cluster. `known` is its status when it was last heard of."""

    def __init__(self, cluster: Cluster, status: JobStatus) -> None:
        self.cluster = cluster
        self.known = status

    def __repr__(self) -> str:
        known = self.known
        return (
            f"<troupe.Job {self.id} {self.name!r} {state_name(known)} "
            f"{known.steps_done}/{known.steps_total}>"
        )

    @property
    def id(self) -> int:
        return self.known.id

    @property
    def name(self) -> str:
        return self.known.name

    def status(self) -> JobStatus:
        """Its status now."""
        for update in self._follow(_NONE_OF_THE_PAST, _NONE_OF_THE_PAST, 0.0, None):
            if isinstance(update, JobStatus):
                break
        return self.known

    def describe(self) -> JobDescription:
        """All that the scheduler knows of it: status, plan, steps, events."""
        request = scheduler_pb2.DescribeJobRequest(id=self.id)
        described = self.cluster.call("DescribeJob", request, JobDescription)
        self.known = described.status
        return described

    def watch(
        self,
        *,
        from_step: int = 0,
        from_event: int = 0,
        patience: float = PATIENCE_SECONDS,
    ) -> Iterator[Update]:
        """Follows the job until it ends.

        Yields each StepRecord and each JobEvent once, those of the past first,
        and a JobStatus at the beginning and whenever its state or reason
        changes. The last update of all is the JobStatus of the job's end.

        from_step: steps after this one. from_event: events after this many.
        patience: for how many seconds a scheduler that went away is looked for;
          the job trains on meanwhile. Unavailable where it does not come back.
        """
        return self._follow(from_step, from_event, patience, None)

    def steps(self, *, from_step: int = 0) -> Iterator[StepRecord]:
        """The steps of watch() alone."""
        for update in self._follow(from_step, _NONE_OF_THE_PAST, PATIENCE_SECONDS, None):
            if isinstance(update, StepRecord):
                yield update

    def wait(
        self, timeout: Optional[float] = None, *, patience: float = PATIENCE_SECONDS
    ) -> JobStatus:
        """Waits until the job has ended, for `timeout` seconds at most.

        Returns its status where it succeeded. Raises JobFailed where it failed
        or was cancelled, TimedOut where it has not ended; it then trains on.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        past = _NONE_OF_THE_PAST
        for _ in self._follow(past, past, patience, deadline):
            pass
        state = state_name(self.known)
        if state != "SUCCEEDED":
            reason = self.known.reason
            raise errors.JobFailed(
                f"job {self.id} ({self.name}) is {state}" + (f": {reason}" if reason else ""),
                self.known,
            )
        return self.known

    def cancel(self, *, checkpoint: bool = False) -> JobStatus:
        """Ends the job; one that has ended stays as it is.

        checkpoint: after the step in progress, which is saved. Returns the
        status once the cancellation is recorded; wait() waits for the end.
        """
        request = scheduler_pb2.CancelJobRequest(id=self.id, checkpoint=checkpoint)
        response = scheduler_pb2.CancelJobResponse
        self.known = self.cluster.call("CancelJob", request, response).status
        return self.known

    def metrics(self) -> pandas.DataFrame:
        """Its steps as a table: a row for each, by its number, and a column for
        each number that a StepRecord has ("loss", "machine.slower"). What a step
        does not have is missing (NaN). Needs pandas.
        """
        return metrics_frame(self.describe().steps)

    def _follow(
        self, from_step: int, from_event: int, patience: float, deadline: Optional[float]
    ) -> Iterator[Update]:
        """watch(), over several connections and until `deadline`."""
        request = scheduler_pb2.WatchJobRequest(
            id=self.id, from_step=from_step, from_event=from_event
        )
        shown: Optional[tuple[int, str]] = None
        lost_at: Optional[float] = None  # since when nothing was heard
        pause = _LOOK_AFTER_SECONDS
        why: errors.TroupeError = errors.Unavailable("the scheduler ended the stream")
        last: Optional[JobStatus] = None
        while True:
            try:
                for response in self._responses(request, deadline):
                    lost_at, pause = None, _LOOK_AFTER_SECONDS
                    self.known = last = response.status
                    yield from response.events
                    yield from response.steps
                    # Of a job that has ended each response has the last status,
                    # and a long curve takes several.
                    state = (last.state, last.reason)
                    if state != shown and not has_ended(last):
                        shown = state
                        yield last
                if last is not None and has_ended(last):
                    yield last
                    return
            except errors.TimedOut:
                if deadline is None or time.monotonic() < deadline:
                    continue  # the stream was old
                raise errors.TimedOut(
                    f"job {self.id} ({self.name}) is {state_name(self.known)} after the "
                    "given time; it goes on"
                ) from None
            except (errors.Unavailable, errors.ClusterNotFound) as error:
                why = error
            now = time.monotonic()
            lost_at = now if lost_at is None else lost_at
            if now - lost_at >= patience:
                raise errors.Unavailable(
                    f"the scheduler did not come back within {patience:g} s: {why}"
                )
            if deadline is not None:
                pause = min(pause, max(deadline - now, 0.0))
            time.sleep(pause)
            pause = min(2 * pause, _LOOK_AFTER_SECONDS_MAX)

    def _responses(
        self, request: scheduler_pb2.WatchJobRequest, deadline: Optional[float]
    ) -> Iterator[scheduler_pb2.WatchJobResponse]:
        """What one connection tells. `request` is moved to behind what was told."""
        seconds = STREAM_SECONDS
        if deadline is not None:
            seconds = min(seconds, deadline - time.monotonic())
            if seconds <= 0:
                raise errors.TimedOut("the given time is over")
        connection = self.cluster.connection()
        try:
            for response in connection.stream(
                "WatchJob", request, scheduler_pb2.WatchJobResponse, seconds
            ):
                if response.steps:
                    request.from_step = response.steps[-1].step
                if request.from_event != _NONE_OF_THE_PAST:
                    request.from_event += len(response.events)
                yield response
        except errors.Unavailable:
            self.cluster.forget(connection)
            raise
