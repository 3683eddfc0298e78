"""One channel to one scheduler: calls with deadlines, errors of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Iterator, Optional, Type, TypeVar

import grpc
from google.protobuf.message import Message

from troupe import _build, errors
from troupe.endpoints import Endpoints, is_loopback
from troupe.proto import worker_pb2
from troupe.trust import check_reachable, verify_scheduler

Response = TypeVar("Response", bound=Message)

CONNECT_SECONDS = 5.0
CALL_SECONDS = 20.0
# Planning compiles the whole job, for ten minutes at most (kPlanMax), and may
# wait for its turn.
PLAN_SECONDS = 11 * 60.0
# A stream of this age is opened again from where it was.
STREAM_SECONDS = 60 * 60.0

_OPTIONS = [
    ("grpc.max_receive_message_length", 256 << 20),  # a plan with programs
    ("grpc.enable_http_proxy", 0),
    # A machine that went away says nothing, and a stream would wait for ever.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
]

_ERRORS: dict[str, Type[errors.TroupeError]] = {
    "UNAVAILABLE": errors.Unavailable,
    "DEADLINE_EXCEEDED": errors.TimedOut,
    "NOT_FOUND": errors.NotFound,
    "PERMISSION_DENIED": errors.NotTrusted,
    "UNAUTHENTICATED": errors.NotTrusted,
}
_REFUSALS = {"INVALID_ARGUMENT", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED"}


def _error(error: grpc.RpcError, address: str) -> errors.TroupeError:
    """gRPC's error as one of ours. The scheduler's own words stay as they are."""
    code: str = error.code().name
    details: str = error.details() or ""
    if code == "UNAVAILABLE":
        details = (
            f"the scheduler at {address} is unavailable ({details}); its log is in the "
            "cluster's folder, under logs/"
        )
    elif code == "DEADLINE_EXCEEDED" and details in ("", "Deadline Exceeded"):
        details = f"the scheduler at {address} did not answer in time"
    elif code == "UNIMPLEMENTED":
        details = f"what answers at {address} is no troupe-scheduler of this version"
    return _ERRORS.get(code, errors.CallFailed)(details, code)


def as_refusal(error: errors.CallFailed) -> errors.TroupeError:
    """The error of a call that carries a job: the job's where it is about that."""
    if error.code in _REFUSALS:
        return errors.JobRefused(str(error), error.code)
    return error


class Connection:
    """A channel that one scheduler answers. May be used by several threads."""

    def __init__(
        self, channel: grpc.Channel, address: str, certificates: Optional[Path]
    ) -> None:
        self.address = address
        self.certificates = certificates
        self._channel = channel
        build = worker_pb2.BuildVersion(
            build=f"{_build.BUILD_NAME} for Python",
            protocol=_build.PROTOCOL,
            oldest_protocol=_build.OLDEST_PROTOCOL,
        )
        self._metadata = (("troupe-version-bin", build.SerializeToString()),)

    @staticmethod
    def open(
        endpoints: Endpoints, insecure: bool, seconds: float = CONNECT_SECONDS
    ) -> Connection:
        """Raises Unavailable and NotTrusted; `insecure`: on any address."""
        address = endpoints.address
        if endpoints.insecure:
            if not insecure and not is_loopback(address):
                raise errors.NotTrusted(
                    f"{address} can be reached from other machines: without TLS anybody on "
                    "the way may read along and command; give certificates=DIR, or say "
                    "insecure='anywhere'"
                )
            check_reachable(address, seconds)
            channel = grpc.insecure_channel(address, _OPTIONS)
        else:
            if endpoints.certificates is None:
                raise errors.NotTrusted(
                    f"by which certificate does the scheduler at {address} know this "
                    "client? Give certificates=DIR, as `troupe up` or `troupe cluster "
                    "certificate` made it; or insecure=True, on one machine only"
                )
            scheduler = verify_scheduler(address, endpoints.certificates, seconds)
            channel = grpc.secure_channel(
                address,
                scheduler.credentials(endpoints.certificates),
                [*_OPTIONS, ("grpc.ssl_target_name_override", scheduler.name)],
            )
        return Connection(channel, address, endpoints.certificates)

    def close(self) -> None:
        self._channel.close()

    def call(
        self,
        method: str,
        request: Message,
        response: Type[Response],
        seconds: float = CALL_SECONDS,
    ) -> Response:
        """One call of troupe.Scheduler. Raises the errors of troupe.errors."""
        serialize: Callable[[Message], bytes] = type(request).SerializeToString
        ask = self._channel.unary_unary(
            f"/troupe.Scheduler/{method}",
            request_serializer=serialize,
            response_deserializer=response.FromString,
        )
        try:
            answer = ask(request, timeout=seconds, metadata=self._metadata)
        except grpc.RpcError as error:
            raise _error(error, self.address) from None
        assert isinstance(answer, response)
        return answer

    def stream(
        self,
        method: str,
        request: Message,
        response: Type[Response],
        seconds: Optional[float] = None,
    ) -> Iterator[Response]:
        """The answers of a streaming call; closing the iterator ends the call."""
        serialize: Callable[[Message], bytes] = type(request).SerializeToString
        ask = self._channel.unary_stream(
            f"/troupe.Scheduler/{method}",
            request_serializer=serialize,
            response_deserializer=response.FromString,
        )
        timeout = STREAM_SECONDS if seconds is None else seconds
        answers = ask(request, timeout=timeout, metadata=self._metadata)
        try:
            for answer in answers:
                assert isinstance(answer, response)
                yield answer
        except grpc.RpcError as error:
            raise _error(error, self.address) from None
        finally:
            answers.cancel()
