"""Which scheduler to talk to: the address that was given, or the one that a
running scheduler wrote into its folder (endpoints.json), as
clients/cpp/find_scheduler.h has it.
"""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import shlex
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from troupe.errors import ClusterNotFound, NotTrusted

ENDPOINTS_FILE = "endpoints.json"


@dataclass(frozen=True)
class Endpoints:
    """Where a scheduler is, and by which certificates a client and it know each
    other."""

    address: str  # HOST:PORT
    certificates: Optional[Path] = None  # a folder; None: no TLS, or unknown
    insecure: bool = False  # the cluster was started without TLS


def host_and_port(address: str) -> tuple[str, int]:
    """Splits "HOST:PORT"; IPv6 addresses are in brackets.

    Raises ClusterNotFound where it is no such address.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ClusterNotFound(
            f"{address}: expected HOST:PORT, as in 127.0.0.1:4321"
        )
    return host.strip("[]"), int(port)


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches HOST:PORT. No name is looked up."""
    host = host_and_port(address)[0]
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_endpoints(directory: Path) -> Endpoints:
    """What DIR/endpoints.json says.

    Raises ClusterNotFound where there is no cluster, where its scheduler is gone
    or runs on another host and listens to that one only; NotTrusted where others
    may write into the folder.
    """
    path = directory / ENDPOINTS_FILE
    try:
        text = path.read_text()
    except OSError as error:
        raise ClusterNotFound(
            f"no cluster in {directory} ({path}: {error.strerror}); start one with: "
            f"{_up_command(directory)}"
        ) from None
    _check_is_ours(directory)
    said = _parse(path, text)
    address = str(said["grpc"])
    if _lives_elsewhere(said, directory):
        if is_loopback(address):
            raise ClusterNotFound(
                f"the scheduler of {directory} runs on {said.get('host')} and is reached "
                f"there only ({address}); connect from there, or have the scheduler "
                f"listen to others: troupe-scheduler --state "
                f"{shlex.quote(str(directory))} --listen 0.0.0.0:PORT"
            )
    elif not _may_run(said):
        raise ClusterNotFound(
            f"the scheduler of {directory} is gone (process {said.get('pid')}); its log is "
            f"in {directory}/logs; start it again, and its workers continue, with: "
            f"{_up_command(directory)}"
        )
    insecure = said.get("security") == "none"
    certificates = None if insecure else client_certificates(directory)
    return Endpoints(address, certificates, insecure)


def client_certificates(directory: Path) -> Path:
    """Where a cluster's folder has the certificate of its clients."""
    return directory / "trust" / "client"


def _up_command(directory: Path) -> str:
    return f"troupe up --workers N --dir {shlex.quote(str(directory))}"


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    if not isinstance(said, dict) or not isinstance(said.get("grpc"), str):
        raise ClusterNotFound(
            f"{path} does not say where the scheduler is; bring the cluster down and up "
            "again"
        )
    return said


def _check_is_ours(directory: Path) -> None:
    """The address in the folder, and the certificates in it, are believed."""
    info = os.stat(directory)
    user = os.geteuid()
    if user != 0 and info.st_uid not in (user, 0):
        raise NotTrusted(
            f"the folder {directory} belongs to another user ({info.st_uid}), who could "
            "put the address of another scheduler there; use a folder of yours"
        )
    if info.st_mode & stat.S_IWOTH:
        raise NotTrusted(
            f"everybody may write into the folder {directory}, and put the address of "
            f"another scheduler there; use a folder of yours, or: chmod o-w "
            f"{shlex.quote(str(directory))}"
        )


def _lives_elsewhere(said: dict[str, Any], directory: Path) -> bool:
    """Whether the file's process is one that this process cannot see."""
    host = said.get("host")
    boot = said.get("boot")
    if not boot or boot != _boot_id():
        return bool(host) and host != socket.gethostname()
    return said.get("pids") != _process_namespace() and _is_locked(directory / "lock")


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _process_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _is_locked(path: Path) -> bool:
    """Whether another process holds the lock (flock) on a file."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _may_run(said: dict[str, Any]) -> bool:
    """Whether the file's process runs, as far as the file identifies it."""
    pid = said.get("pid")
    if not isinstance(pid, int) or pid <= 0:
        return True
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # The name, in parentheses, may hold anything; then "S", ..., from field 3 on.
    fields = line[line.rfind(")") + 1 :].split()
    state, threads, start_ticks = fields[0], int(fields[17]), int(fields[19])
    if state == "X" or (state == "Z" and threads <= 1):
        return False
    return said.get("start_ticks", 0) in (0, start_ticks)


def find_scheduler(
    directory: Optional[Path],
    address: Optional[str],
    certificates: Optional[Path],
) -> Endpoints:
    """The scheduler of `address`, else of `directory`, else of TROUPE_DIR.

    `certificates` wins over those in the folder. Raises ClusterNotFound where
    nothing says which cluster is meant, and what read_endpoints raises.
    """
    environment = os.environ.get("TROUPE_DIR")
    folder = directory or (Path(environment) if environment else None)
    if address is not None:
        host_and_port(address)
        if certificates is None and folder is not None:
            certificates = client_certificates(folder)
        return Endpoints(address, certificates)
    if folder is None:
        raise ClusterNotFound(
            "which cluster? Give directory=DIR (as in troupe up --dir DIR) or "
            "address='HOST:PORT', or set TROUPE_DIR"
        )
    found = read_endpoints(folder)
    if certificates is None:
        return found
    return Endpoints(found.address, certificates)
