"""Jobs that the program `troupe` submits and plans on the package's behalf: those
with `model.hf`. What a Hugging Face directory means (its config.json, the
families, the checks of its weights) only that program knows, and a second
version of these rules would differ from it sooner or later.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from troupe.errors import JobRefused
from troupe.fill_message import is_repeated
from troupe.job_file import LoadedJob

PROGRAM_VARIABLE = "TROUPE_PROGRAM"

_ACCEPTED = re.compile(r"job ([0-9]+) ")


def submit_with_program(loaded: LoadedJob, cluster_flags: list[str]) -> int:
    """The number of the job. Raises JobRefused."""
    said = _run("submit", loaded, cluster_flags)
    accepted = _ACCEPTED.match(said)
    if accepted is None:
        raise JobRefused(f"troupe submit did not say that it accepted the job: {said}")
    return int(accepted[1])


def plan_with_program(
    loaded: LoadedJob, cluster_flags: list[str], into: Message, *options: str
) -> None:
    """Fills a Plan or an Explanation. Raises JobRefused."""
    said = _run("plan", loaded, [*cluster_flags, "--json", *options])
    ParseDict(json.loads(said), into)


def plain_dict(message: Message) -> dict[str, Any]:
    """The fields that are set, as a job file has them."""
    fields: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.message_type is None:
            fields[field.name] = list(value) if is_repeated(field) else value
        elif is_repeated(field):
            fields[field.name] = [plain_dict(item) for item in value]
        else:
            fields[field.name] = plain_dict(value)
    return fields


def _program() -> str:
    given = os.environ.get(PROGRAM_VARIABLE)
    program = shutil.which(given or "troupe")
    if program is None:
        raise JobRefused(
            "model.hf: the program troupe reads a Hugging Face directory, and "
            + (f"{PROGRAM_VARIABLE}={given} is none" if given else "it is not on PATH")
            + f"; set {PROGRAM_VARIABLE} to where it is"
        )
    return program


def _run(command: str, loaded: LoadedJob, options: list[str]) -> str:
    """What `troupe COMMAND` printed about the job."""
    program = _program()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.yaml"
        file.write_text(yaml.safe_dump(plain_dict(loaded.spec)))
        done = subprocess.run(
            [program, command, str(file), *options],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 0:
        return done.stdout
    message = done.stderr.strip()
    message = re.sub(r"^troupe: ", "", message)
    # Places in a file that the user has not seen.
    message = re.sub(rf"{re.escape(str(file))}(:\d+:\d+)?: ", "", message)
    raise loaded.locate(
        JobRefused(message or f"{shlex.quote(program)} ended with {done.returncode}")
    )
