"""What goes wrong, by what a caller can do about it."""

from __future__ import annotations

from typing import Optional


class TroupeError(Exception):
    """The base of all errors of this package.

    `code` is gRPC's code where the scheduler answered with one, as
    "INVALID_ARGUMENT", and None where the error arose on this side.
    """

    def __init__(self, message: str, code: Optional[str] = None) -> None:
        super().__init__(message)
        self.code = code


class ClusterNotFound(TroupeError):
    """Nothing says which cluster is meant, or its folder holds none that runs."""


class Unavailable(TroupeError, ConnectionError):
    """No scheduler answers at the address, or the connection was lost."""


class TimedOut(TroupeError, TimeoutError):
    """The answer, or the end of the job, did not come in time."""


class NotTrusted(TroupeError):
    """Client and scheduler do not accept each other's certificates."""


class NotFound(TroupeError, LookupError):
    """There is no such job, worker or timeline."""


class JobRefused(TroupeError, ValueError):
    """The job is wrong, or this cluster cannot run it.

    The message begins with the field, and with the place in the job file where
    there is one: "job.yaml:14:9: parallelism.data: ...".
    """


class JobFailed(TroupeError):
    """The job ended, and not with success. `status` is its last status."""

    def __init__(self, message: str, status: object) -> None:
        super().__init__(message)
        self.status = status


class CallFailed(TroupeError):
    """Any other refusal of the scheduler; `code` says which."""
