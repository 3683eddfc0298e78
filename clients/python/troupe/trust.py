"""How client and scheduler know each other: by certificates that one authority
signed, each with a role (docs/security.md).

gRPC for Python compares the name in a certificate, and cannot be asked to
compare a role. Troupe compares the role: names of hosts may be anything, and a
worker's certificate must not pass for a scheduler's. So each connection begins
with a TLS 1.3 handshake of Python's own `ssl`, which verifies the chain, and
here the role. gRPC then gets the one certificate that was verified, as the only
one it accepts: what it connects to later, now or after a break, holds the key of
that certificate.
"""

from __future__ import annotations

import os
import shlex
import socket
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from troupe.endpoints import host_and_port
from troupe.errors import NotTrusted, Unavailable

SCHEDULER_ROLE = "troupe:scheduler"
_EVERYBODY = 0o007
_FILE_BYTES_MAX = 1 << 20


@dataclass(frozen=True)
class MemberFiles:
    """A folder of certificates, as proto/trust/member_files.h has it."""

    authority: Path
    certificate: Path
    key: Path

    @staticmethod
    def of(directory: Path) -> MemberFiles:
        return MemberFiles(
            directory / "authority.pem",
            directory / "certificate.pem",
            directory / "key.pem",
        )


@dataclass(frozen=True)
class VerifiedScheduler:
    """What a scheduler has shown, and this client has verified."""

    certificate: bytes  # PEM
    name: str  # one that the certificate is for

    def credentials(self, certificates: Path) -> grpc.ChannelCredentials:
        """Of a channel that this scheduler alone can answer."""
        files = MemberFiles.of(certificates)
        return grpc.ssl_channel_credentials(
            root_certificates=self.certificate,
            private_key=_read(files.key, is_secret=True),
            certificate_chain=_read(files.certificate),
        )


def verify_scheduler(
    address: str, certificates: Path, seconds: float
) -> VerifiedScheduler:
    """Connects to HOST:PORT, verifies the peer that answers, and hangs up.

    Raises Unavailable where nobody answers, NotTrusted where a file of
    `certificates` is of no use, where what answers is no scheduler of the
    authority, or where it refuses this client's certificate.
    """
    context = _client_context(certificates)
    with _dial(address, seconds) as plain:
        plain.settimeout(seconds)
        try:
            with context.wrap_socket(plain) as secured:
                shown = secured.getpeercert() or {}
                pem = secured.getpeercert(binary_form=True) or b""
                check_role(address, shown)
                _await_acceptance(address, certificates, secured)
        except ssl.SSLCertVerificationError as error:
            raise NotTrusted(
                f"the scheduler at {address} shows a certificate that "
                f"{MemberFiles.of(certificates).authority} does not vouch for: "
                f"{error.verify_message}"
            ) from None
        except ssl.SSLError as error:
            raise NotTrusted(
                f"what answers at {address} does not speak TLS 1.3 with this client, or "
                f"refuses the certificate in {certificates}: {error.reason or error}"
            ) from None
        except OSError as error:
            raise Unavailable(
                f"what answers at {address} is no scheduler: it hung up during the TLS "
                f"handshake ({error})"
            ) from None
    return VerifiedScheduler(
        ssl.DER_cert_to_PEM_cert(pem).encode(), _name_in(shown)
    )


def check_reachable(address: str, seconds: float) -> None:
    """Raises Unavailable where nobody listens at HOST:PORT."""
    _dial(address, seconds).close()


def _dial(address: str, seconds: float) -> socket.socket:
    try:
        return socket.create_connection(host_and_port(address), timeout=seconds)
    except OSError as error:
        raise Unavailable(
            f"no scheduler answers at {address} ({error}); start a cluster with: troupe "
            "up --workers N --dir DIR"
        ) from None


def _client_context(certificates: Path) -> ssl.SSLContext:
    files = MemberFiles.of(certificates)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h2"])
    _read(files.key, is_secret=True)
    try:
        context.load_verify_locations(cadata=_read(files.authority).decode())
        # An encrypted key is refused: nobody is asked for its password.
        context.load_cert_chain(files.certificate, files.key, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise NotTrusted(
            f"the certificate in {certificates} is of no use: {reason}; make another "
            "with: troupe cluster certificate HOST --role client"
        ) from None
    return context


def _read(path: Path, is_secret: bool = False) -> bytes:
    """The bytes of a PEM file; NotTrusted where it must not be used."""
    try:
        # Not waiting where a pipe is in the file's place.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotTrusted(
            f"{path}: {error.strerror}; a client needs the files of `troupe up` or of: "
            "troupe cluster certificate HOST --role client"
        ) from None
    with os.fdopen(file, "rb") as stream:
        mode = os.fstat(stream.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise NotTrusted(f"{path} is no file")
        if is_secret and mode & _EVERYBODY:
            raise NotTrusted(
                f"{path} is a secret that everybody on this machine may use; make a new "
                f"one, and keep it: chmod 600 {shlex.quote(str(path))}"
            )
        data = stream.read(_FILE_BYTES_MAX + 1)
    if len(data) > _FILE_BYTES_MAX:
        raise NotTrusted(f"{path} has more than {_FILE_BYTES_MAX} bytes")
    return data


def _alternative_names(certificate: Any, kind: str) -> list[str]:
    return [name for of, name in certificate.get("subjectAltName", ()) if of == kind]


def check_role(address: str, certificate: Any) -> None:
    """Raises NotTrusted where a certificate, as ssl tells of it, is not that of a
    scheduler."""
    if SCHEDULER_ROLE in _alternative_names(certificate, "URI"):
        return
    raise NotTrusted(
        f"what answers at {address} is not a scheduler: its certificate "
        f"({_common_name(certificate)}) has no URI:{SCHEDULER_ROLE} among its names"
    )


def _await_acceptance(
    address: str, certificates: Path, secured: ssl.SSLSocket
) -> None:
    """With TLS 1.3 a client's handshake ends before the server has looked at the
    client's certificate. A server of HTTP/2 that accepts it speaks first.
    """
    if secured.recv(1):
        return
    raise NotTrusted(
        f"the scheduler at {address} refuses the certificate in {certificates}: another "
        "authority signed it, or its time has ended"
    )


def _common_name(certificate: Any) -> str:
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                return str(value)
    return "unnamed"


def _name_in(certificate: Any) -> str:
    """A name for gRPC to compare, which must have one."""
    for kind in ("DNS", "IP Address"):
        for name in _alternative_names(certificate, kind):
            return name.replace("*", "scheduler")
    return _common_name(certificate)
