"""Parquet as JSON lines. pyarrow is none of Debian's packages: where it is not
installed, a module that answers as it does stands in for it."""

import io
import json
import sys
import types
import unittest
from unittest import mock

from troupe import parquet


class FakeFile:
    """A file of two batches, by its path."""

    columns = {"text": ["one", None, "z\u00e9ro \U0001f600", ""], "id": [1, 2, 3, 4]}

    def __init__(self, path):
        if path == "bad.parquet":
            raise OSError("Parquet magic bytes not found in footer")
        self.schema_arrow = types.SimpleNamespace(names=list(self.columns))

    def iter_batches(self, batch_size, columns):
        values = self.columns[columns[0]]
        for at in range(0, len(values), 2):
            column = types.SimpleNamespace(
                to_pylist=lambda at=at: values[at : at + 2]
            )
            yield types.SimpleNamespace(column=lambda _, column=column: column)


def with_pyarrow():
    package = types.ModuleType("pyarrow")
    module = types.ModuleType("pyarrow.parquet")
    module.ParquetFile = FakeFile
    return mock.patch.dict(
        sys.modules, {"pyarrow": package, "pyarrow.parquet": module}
    )


class Parquet(unittest.TestCase):
    def test_rows_with_a_text_become_lines(self):
        out = io.StringIO()
        with with_pyarrow():
            self.assertEqual(parquet.write_lines(["a", "b"], out), 4)
        lines = out.getvalue().splitlines()
        self.assertEqual(
            [json.loads(line) for line in lines],
            2 * [{"text": "one"}, {"text": "z\u00e9ro \U0001f600"}],
        )
        self.assertTrue(out.getvalue().isascii())

    def test_says_what_is_wrong(self):
        with with_pyarrow():
            for path, field, words in [
                ("bad.parquet", "text", "bad.parquet: Parquet magic bytes"),
                ("a", "body", 'has no column "body"; it has text, id'),
                ("a", "id", 'row 1 of the column "id" is no text but int'),
            ]:
                with self.assertRaises(parquet.ParquetError) as caught:
                    list(parquet.texts(path, field))
                self.assertIn(words, str(caught.exception))

    def test_says_how_to_get_pyarrow(self):
        with mock.patch.dict(sys.modules, {"pyarrow.parquet": None}):
            with self.assertRaises(parquet.PyarrowMissing) as caught:
                list(parquet.texts("a"))
        self.assertIn("troupe[parquet]", str(caught.exception))

    def test_as_a_program(self):
        with with_pyarrow(), mock.patch("sys.stdout", io.StringIO()) as out:
            self.assertEqual(parquet.main(["a", "--field", "text"]), 0)
        self.assertEqual(len(out.getvalue().splitlines()), 2)
        with with_pyarrow(), mock.patch("sys.stderr", io.StringIO()) as err:
            self.assertEqual(parquet.main(["bad.parquet"]), 1)
        self.assertIn("bad.parquet", err.getvalue())


if __name__ == "__main__":
    unittest.main()
