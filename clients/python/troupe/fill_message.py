"""Writes a tree of values into a message, field by field, through the message's
descriptor: a field of the .proto file is a field of the job. What the message
has no place for is refused by name.

The shapes are those of job files: a single value is a list of one; a section
that has a field `mode` may be given as that alone, one that has a list `sources`
as that list; an empty section is skipped.
"""

from __future__ import annotations

import difflib
import math
import re
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from troupe.errors import JobRefused
from troupe.job_tree import Entry, Node, Plain, node_of

# protobuf has several implementations of each, which share no base class.
Descriptor = Any
Field = Any

# Where each field that was given stands: "optimizer.lr" to "job.yaml:6:7".
Positions = dict[str, str]

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}


def fill_message(root: Node, message: Message, positions: Positions) -> None:
    """Sets the fields of `message` that `root` names. Raises JobRefused."""
    _Filler(message.DESCRIPTOR, positions).section(root, "", message)


def fill_field(path: str, value: Any, message: Message, positions: Positions) -> None:
    """Sets the field at "optimizer.lr" to a value of Python; None clears it."""
    filler = _Filler(message.DESCRIPTOR, positions)
    node = node_of(value)
    parent = message
    names = path.split(".")
    for depth, name in enumerate(names):
        walked = ".".join(names[: depth + 1])
        entry = Entry("", name, node)
        field = filler.find(entry, walked, parent.DESCRIPTOR)
        if depth + 1 < len(names):
            if field.message_type is None or is_repeated(field):
                raise JobRefused(f"{walked} has no fields")
            parent = getattr(parent, name)
        elif value is None:
            parent.ClearField(name)
            positions.pop(path, None)
        else:
            positions.pop(path, None)
            filler.field(node, field, path, parent)


def field_paths(descriptor: Descriptor, prefix: str = "") -> list[str]:
    """Every path of a value: "name", "model.architecture", ..."""
    paths: list[str] = []
    for field in descriptor.fields:
        if field.message_type is None:
            paths.append(prefix + field.name)
        else:
            paths += field_paths(field.message_type, f"{prefix}{field.name}.")
    return paths


def set_fields(message: Message) -> list[str]:
    """The paths of all fields that are set, as the scheduler wants them with a
    job: one of another build sees what it does not know."""
    paths: set[str] = set()

    def walk(inner: Message, prefix: str) -> None:
        for field, value in inner.ListFields():
            paths.add(prefix + field.name)
            if field.message_type is None:
                continue
            for item in value if is_repeated(field) else [value]:
                walk(item, f"{prefix}{field.name}.")

    walk(message, "")
    return sorted(paths)


def is_repeated(field: Field) -> bool:
    """Whether a field is a list."""
    # Newer versions of protobuf say so in another way than older ones.
    flag = getattr(field, "is_repeated", None)
    if flag is not None:
        return bool(flag)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED)


class _Filler:
    def __init__(self, root: Descriptor, positions: Positions) -> None:
        self.root = root
        self.positions = positions

    def section(self, node: Node, path: str, message: Message) -> None:
        if node.value is None:
            return
        descriptor = message.DESCRIPTOR
        if not isinstance(node.value, list) and "mode" in descriptor.fields_by_name:
            mode = descriptor.fields_by_name["mode"]
            setattr(message, "mode", self.scalar(node, mode, path))
            return
        is_list = isinstance(node.value, list) and not node.is_section
        if is_list and "sources" in descriptor.fields_by_name:
            sources = descriptor.fields_by_name["sources"]
            self.field(node, sources, f"{path}.sources", message)
            return
        if not node.is_section or not isinstance(node.value, list):
            label = f"{path}: " if path else ""
            raise node.refuse(
                f'{label}expected fields, as in "{descriptor.fields[0].name}: ...", '
                f"found {node.found()}"
            )
        for entry in node.value:
            assert isinstance(entry, Entry)
            inner = f"{path}.{entry.name}" if path else entry.name
            self.field(entry.value, self.find(entry, inner, descriptor), inner, message)

    def field(
        self, node: Node, field: Field, path: str, message: Message
    ) -> None:
        if node.value is None and not node.where:
            return  # None in a dict: the default
        self.positions[path] = node.where
        if is_repeated(field):
            self.repeated(node, field, path, message)
        elif field.message_type is not None:
            child = getattr(message, field.name)
            if node.value is not None:
                child.SetInParent()
            self.section(node, path, child)
        else:
            setattr(message, field.name, self.scalar(node, field, path))

    def find(self, entry: Entry, path: str, descriptor: Descriptor) -> Field:
        field = descriptor.fields_by_name.get(entry.name)
        if field is not None:
            return field
        place = Node(entry.where, None)
        raise place.refuse(f"{path}: no such field; {self.way_out(entry, descriptor)}")

    def way_out(self, entry: Entry, descriptor: Descriptor) -> str:
        """A near name of the section, else the same name elsewhere, else all."""
        siblings = [field.name for field in descriptor.fields]
        near = difflib.get_close_matches(entry.name, siblings, 1)
        if not near:
            near = [
                path
                for path in field_paths(self.root)
                if path.rsplit(".", 1)[-1] == entry.name
            ]
        if near:
            return f"did you mean {near[0]}?"
        return f"there are {', '.join(siblings)}"

    def repeated(
        self, node: Node, field: Field, path: str, message: Message
    ) -> None:
        is_list = isinstance(node.value, list) and not node.is_section
        if not is_list and (field.message_type is not None or node.is_section):
            raise node.refuse(
                f"{path}: expected a list, as in {field.name}: [...], found "
                f"{node.found()}"
            )
        message.ClearField(field.name)
        target = getattr(message, field.name)
        if not isinstance(node.value, list):
            target.append(self.scalar(node, field, path))
            return
        for i, item in enumerate(node.value):
            assert isinstance(item, Node)
            item_path = f"{path}[{i}]"
            self.positions[item_path] = item.where
            if field.message_type is not None:
                self.section(item, item_path, target.add())
            else:
                target.append(self.scalar(item, field, item_path))

    def scalar(self, node: Node, field: Field, path: str) -> Any:
        """The value that a field of this type holds. Strict: 3.5 is no integer,
        "200" in quotes is no number, yes is no truth value."""
        kind = field.cpp_type
        try:
            if kind in _RANGES:
                return _integer(node, *_RANGES[kind])
            if kind == FieldDescriptor.CPPTYPE_DOUBLE:
                return _number(node)
            if kind == FieldDescriptor.CPPTYPE_BOOL:
                return _truth(node)
            return _text(node)
        except _Expected as expected:
            raise node.refuse(
                f"{path}: expected {expected}, found {node.found()}"
            ) from None


class _Expected(Exception):
    """What would have been right."""


def _integer(node: Node, least: int, most: int) -> int:
    value = node.value
    if isinstance(value, Plain) and _INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Expected("an integer")
    if value < least:
        raise _Expected("an integer from 0 on")
    if value > most:
        raise _Expected(f"an integer up to {most}")
    return value


def _number(node: Node) -> float:
    value = node.value
    if isinstance(value, Plain) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _Expected("a number")
    if not math.isfinite(value):
        raise _Expected("a finite number")
    return float(value)


def _truth(node: Node) -> bool:
    value = node.value
    if isinstance(value, Plain) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise _Expected("true or false")
    return value


def _text(node: Node) -> str:
    value = node.value
    if value is None or isinstance(value, list):
        raise _Expected("a text")
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
