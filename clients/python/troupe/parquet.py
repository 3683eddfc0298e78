"""Parquet files as JSON lines, which `troupe data prepare` reads.

    python3 -m troupe.parquet data/*.parquet | troupe data prepare - \\
        --format jsonl --out data.tokens

C++ has no Parquet library that Debian ships, so the files are read here, by
pyarrow: pip install 'troupe[parquet]'. Memory holds one batch of rows.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Optional, TextIO, Union

from troupe.errors import TroupeError

ROWS_AT_ONCE = 4096

Path = Union[str, "os.PathLike[str]"]


class PyarrowMissing(TroupeError, ImportError):
    """The package pyarrow is not installed."""


class ParquetError(TroupeError, ValueError):
    """A Parquet file that cannot be read, or has no such column of texts."""


def texts(path: Path, field: str = "text") -> Iterator[Optional[str]]:
    """The texts of a column, row by row; None where a row has none.

    Raises PyarrowMissing and ParquetError.
    """
    parquet = _pyarrow_parquet()
    try:
        file = parquet.ParquetFile(path)
    except Exception as error:  # pyarrow has many kinds
        raise ParquetError(f"{os.fspath(path)}: {error}") from None
    names = list(file.schema_arrow.names)
    if field not in names:
        raise ParquetError(
            f'{os.fspath(path)}: has no column "{field}"; it has '
            f"{', '.join(names)}: name one of them with --field"
        )
    row = 0
    for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=[field]):
        for text in batch.column(0).to_pylist():
            row += 1
            if text is not None and not isinstance(text, str):
                raise ParquetError(
                    f'{os.fspath(path)}: row {row} of the column "{field}" is no '
                    f"text but {type(text).__name__}"
                )
            yield text


def write_lines(paths: Sequence[Path], out: TextIO, field: str = "text") -> int:
    """Writes a line of JSON, {"text": ...}, for each row that has a text. Returns
    how many."""
    lines = 0
    for path in paths:
        for text in texts(path, field):
            if not text:
                continue
            out.write(json.dumps({"text": text}))
            out.write("\n")
            lines += 1
    return lines


def _pyarrow_parquet() -> Any:
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise PyarrowMissing(
            "reading Parquet needs the package pyarrow: pip install "
            "'troupe[parquet]'"
        ) from None


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m troupe.parquet",
        description="Writes a column of Parquet files as JSON lines.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--field", default="text", help="the column [text]")
    given = parser.parse_args(arguments)
    try:
        write_lines(given.files, sys.stdout, given.field)
        sys.stdout.flush()
    except TroupeError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
