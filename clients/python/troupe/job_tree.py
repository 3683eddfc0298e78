"""A job as a tree of values that know where they stand: made of a job file
(YAML), or of Python's dicts, lists and scalars.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

import yaml

from troupe.errors import JobRefused

BYTES_MAX = 1 << 20  # of a job file
NODES_MAX = 20_000
DEPTH_MAX = 32


class Plain(str):
    """A scalar of YAML without quotes: the field's type decides what it means."""


@dataclass(frozen=True)
class Entry:
    """A field's name and its value."""

    where: str  # of the name
    name: str
    value: Node


@dataclass(frozen=True)
class Node:
    """A value. `where` is "job.yaml:14:9", or empty for a value of Python."""

    where: str
    value: Union[None, bool, int, float, str, list["Node"], list[Entry]]
    is_section: bool = False  # the list is one of entries

    def found(self) -> str:
        """For messages: "the number 7", "a list"."""
        if self.is_section:
            return "a section with fields of its own"
        if isinstance(self.value, list):
            return "a list"
        if self.value is None:
            return "nothing"
        if isinstance(self.value, bool):
            return str(self.value).lower()
        text = str(self.value)
        shown = text if len(text) <= 40 else text[:40] + "..."
        if isinstance(self.value, (int, float)):
            return f"the number {shown}"
        if isinstance(self.value, Plain) and _is_number(self.value):
            return f"the number {shown}"
        return f'the text "{shown}"'

    def refuse(self, what: str) -> JobRefused:
        """The error that names the place."""
        return JobRefused(f"{self.where}: {what}" if self.where else what)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Reader:
    """Converts one tree, and counts what it takes."""

    def __init__(self) -> None:
        self.nodes = 0

    def count(self, node: Node, depth: int) -> None:
        self.nodes += 1
        if self.nodes > NODES_MAX:
            raise node.refuse(f"more than {NODES_MAX} values")
        if depth > DEPTH_MAX:
            raise node.refuse(f"nested deeper than {DEPTH_MAX} levels")


class _PythonReader(_Reader):
    def node(self, value: Any, depth: int = 0) -> Node:
        self.count(Node("", None), depth)
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if value is None or isinstance(value, (bool, int, float, str)):
            return Node("", value)
        if isinstance(value, Mapping):
            entries = []
            for key, item in value.items():
                if not isinstance(key, str):
                    raise JobRefused(f"expected a field's name, found {key!r}")
                entries.append(Entry("", key, self.node(item, depth + 1)))
            return Node("", entries, is_section=True)
        if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
            return Node("", [self.node(item, depth + 1) for item in value])
        item = getattr(value, "item", None)  # of numpy's and torch's scalars
        if callable(item) and getattr(value, "ndim", None) == 0:
            return self.node(item(), depth)
        raise JobRefused(
            f"a job is made of dicts, lists, texts, numbers and truth values, found a "
            f"{type(value).__name__}"
        )


class _Loader(yaml.SafeLoader):
    """Stops where a job file is too large, before that takes minutes."""

    depth = 0
    nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.nodes += 1
        if self.nodes > 2 * NODES_MAX:  # names and values
            raise yaml.YAMLError(f"more than {NODES_MAX} values")
        if self.depth > DEPTH_MAX:
            raise yaml.YAMLError(f"nested deeper than {DEPTH_MAX} levels")
        self.depth += 1
        compose: Any = super().compose_node
        node = compose(parent, index)
        self.depth -= 1
        return node


class _YamlReader(_Reader):
    def __init__(self, name: str, loader: _Loader) -> None:
        super().__init__()
        self.name = name
        self.loader = loader

    def at(self, mark: Any) -> str:
        return f"{self.name}:{mark.line + 1}:{mark.column + 1}"

    def node(self, found: yaml.Node, depth: int = 0) -> Node:
        where = self.at(found.start_mark)
        self.count(Node(where, None), depth)
        if isinstance(found, yaml.ScalarNode):
            return Node(where, self.scalar(where, found))
        if isinstance(found, yaml.SequenceNode):
            self.check_tag(where, found)
            return Node(where, [self.node(item, depth + 1) for item in found.value])
        self.check_tag(where, found)
        entries: list[Entry] = []
        lines: dict[str, int] = {}
        for key, value in found.value:
            place = self.at(key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                raise JobRefused(f"{place}: expected a field's name")
            if key.value in lines:
                raise JobRefused(
                    f"{place}: {key.value} is there twice; the first is in line "
                    f"{lines[key.value]}"
                )
            lines[key.value] = key.start_mark.line + 1
            entries.append(Entry(place, key.value, self.node(value, depth + 1)))
        return Node(where, entries, is_section=True)

    def scalar(self, where: str, found: yaml.ScalarNode) -> Optional[str]:
        self.check_tag(where, found)
        text: str = found.value
        if found.style is not None:
            return text
        resolve: Any = self.loader.resolve
        implicit = resolve(yaml.ScalarNode, text, (True, False))
        if implicit != found.tag:  # "!!str 7"
            return text
        if text in ("", "~", "null", "Null", "NULL"):
            return None
        return Plain(text)

    @staticmethod
    def check_tag(where: str, found: yaml.Node) -> None:
        if not found.tag.startswith("tag:yaml.org,2002:"):
            raise JobRefused(f"{where}: the tag {found.tag} means nothing in a job file")


def node_of(value: Any) -> Node:
    """The tree of a dict, list or scalar. Raises JobRefused."""
    return _PythonReader().node(value)


def read_yaml(path: Path) -> Node:
    """The tree of a job file. Raises JobRefused, with the place in the file."""
    try:
        with open(path, "rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise JobRefused(f"{path}: cannot open the job file: {error.strerror}") from None
    if len(data) > BYTES_MAX:
        raise JobRefused(f"{path}: more than {BYTES_MAX} bytes")
    try:
        loader = _Loader(data.decode("utf-8"))
        found = loader.get_single_node()
    except UnicodeDecodeError:
        raise JobRefused(f"{path}: this is not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise JobRefused(f"{place}: not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise JobRefused(f"{path}: not YAML: {error}") from None
    if found is None:
        raise JobRefused(f"{path}: the job file is empty")
    return _YamlReader(str(path), loader).node(found)
