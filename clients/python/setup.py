"""Builds the package with what the repository's sources say.

From proto/*.proto come the modules troupe.proto.*_pb2 and their types, from
proto/protocol_version.h comes the version. TROUPE_PROTO names the folder of the
.proto files; without it they are looked for beside this checkout's clients/.
Needs protoc 3.20 or newer: Debian's protobuf-compiler, which
third_party/install.sh installs.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
PROTO = Path(os.environ.get("TROUPE_PROTO") or HERE.parent.parent / "proto")
VERSION_HEADER = PROTO / "protocol_version.h"


def constant(name):
    """What protocol_version.h says that a constant is."""
    if not VERSION_HEADER.is_file():
        raise SystemExit(
            f"{VERSION_HEADER} is not there: build this package from a checkout of "
            "Troupe, or set TROUPE_PROTO to the folder of its .proto files"
        )
    found = re.search(rf'\b{name}(?:\[\])? = "?([^;"]+)"?;', VERSION_HEADER.read_text())
    if found is None:
        raise SystemExit(f"{VERSION_HEADER} does not define {name}")
    return found[1]


def generate_messages(package):
    """Writes PACKAGE/proto/*_pb2.py and .pyi.

    The files import each other as "proto/x.proto". In Python that would be a
    top-level package `proto`, which another project has: they are compiled as
    "troupe/proto/x.proto".
    """
    protoc = shutil.which("protoc")
    if protoc is None:
        raise SystemExit("protoc is not there; run third_party/install.sh")
    sources = sorted(PROTO.glob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder) / "troupe" / "proto"
        inside.mkdir(parents=True)
        for source in sources:
            text = source.read_text().replace('import "proto/', 'import "troupe/proto/')
            (inside / source.name).write_text(text)
        subprocess.run(
            [protoc, f"-I{folder}", f"--python_out={folder}", f"--pyi_out={folder}"]
            + [f"troupe/proto/{source.name}" for source in sources],
            check=True,
        )
        target = package / "proto"
        target.mkdir(parents=True, exist_ok=True)
        for made in list(inside.glob("*_pb2.py")) + list(inside.glob("*_pb2.pyi")):
            shutil.copy(made, target / made.name)
    (target / "__init__.py").write_text('"""Troupe\'s messages: proto/*.proto."""\n')


def write_version(package):
    """Writes PACKAGE/_build.py: which build of Troupe this client is."""
    lines = [
        '"""Made by setup.py from proto/protocol_version.h."""',
        "",
        f'BUILD_NAME = "{constant("kBuildName")}"',
        f"PROTOCOL = {int(constant('kProtocolVersion'))}",
        f"OLDEST_PROTOCOL = {int(constant('kOldestProtocolVersion'))}",
        "",
    ]
    (package / "_build.py").write_text("\n".join(lines))


class BuildWithMessages(build_py):
    def run(self):
        super().run()
        package = Path(self.build_lib) / "troupe"
        generate_messages(package)
        write_version(package)


setup(
    version=constant("kBuildName").split()[-1],
    cmdclass={"build_py": BuildWithMessages},
)
