"""Steps as rows of numbers: for tables, and for what plots them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Union

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from troupe.errors import TroupeError
from troupe.fill_message import Descriptor, Field, is_repeated
from troupe.proto.cluster_pb2 import Tier
from troupe.proto.status_pb2 import StepRecord

if TYPE_CHECKING:
    import pandas

Number = Union[int, float, bool]


class PandasMissing(TroupeError, ImportError):
    """metrics() makes a table of pandas, which is not installed."""


def step_numbers(step: StepRecord) -> dict[str, Number]:
    """The numbers of a step by their names: "loss", "routers.entropy".

    What is optional and not there is left out. Lists are left out, but for the
    traffic of tiers of memory: "tiers.HOST.bytes_in".
    """
    row: dict[str, Number] = {}
    _add_numbers(step, "", row)
    for tier in step.tiers:
        _add_numbers(tier, f"tiers.{Tier.Name(tier.tier)}.", row)
    return row


def step_columns(descriptor: Descriptor, prefix: str = "") -> list[str]:
    """The names that step_numbers gives to what is no list, in their order."""
    names: list[str] = []
    for field in descriptor.fields:
        if is_repeated(field) or _is_name(field):
            continue
        if field.message_type is not None:
            names += step_columns(field.message_type, f"{prefix}{field.name}.")
        else:
            names.append(prefix + field.name)
    return names


def metrics_frame(steps: Iterable[StepRecord]) -> pandas.DataFrame:
    """A row for each step, by its number. Raises PandasMissing."""
    try:
        import pandas
    except ImportError:
        raise PandasMissing(
            "metrics() makes a table of pandas; install it (pip install pandas), or read "
            "the steps of describe()"
        ) from None
    rows = [step_numbers(step) for step in steps]
    seen = {name for row in rows for name in row}
    known = step_columns(StepRecord.DESCRIPTOR)
    # Of what a model or a machine does not have (routers, tiers) no column.
    columns = [name for name in known if "." not in name or name in seen]
    columns += sorted(seen - set(known))
    frame: pandas.DataFrame = pandas.DataFrame(rows, columns=columns)
    return frame.set_index("step")


def _is_name(field: Field) -> bool:
    kinds = (FieldDescriptor.CPPTYPE_STRING, FieldDescriptor.CPPTYPE_ENUM)
    return field.cpp_type in kinds


def _add_numbers(message: Message, prefix: str, row: dict[str, Number]) -> None:
    for field in message.DESCRIPTOR.fields:
        if is_repeated(field) or _is_name(field):
            continue
        is_absent = field.has_presence and not message.HasField(field.name)
        if is_absent:
            continue
        value = getattr(message, field.name)
        if field.message_type is not None:
            _add_numbers(value, f"{prefix}{field.name}.", row)
        else:
            row[prefix + field.name] = value
