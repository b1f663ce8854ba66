"""Columns of samples have the values and types of pyarrow's own, and do not load pandas."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.measure.columns import column, repeated


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_those_of_pyarrow(values: list[int]) -> None:
    assert column(np.array(values, np.int64), pa.int64()).equals(pa.array(values, pa.int64()))


@given(st.lists(st.floats(allow_nan=False)))
def test_floats_are_those_of_pyarrow(values: list[float]) -> None:
    made = column(values, pa.float64())
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.float64()))


def test_integers_become_floats_and_a_view_is_copied() -> None:
    every_other = np.arange(10)[::2]
    assert column(every_other, pa.float64()).to_pylist() == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_floats_are_no_integers() -> None:
    with pytest.raises(TypeError, match="same_kind"):
        column([1.5], pa.int64())


@given(st.text(), st.integers(0, 9))
def test_a_text_is_repeated(text: str, rows: int) -> None:
    made = repeated(text, pa.string(), rows)
    made.validate(full=True)
    assert made.to_pylist() == [text] * rows


def test_a_number_is_repeated() -> None:
    assert repeated(3, pa.int32(), 2).equals(pa.array([3, 3], pa.int32()))


def test_more_text_than_offsets_of_32_bits_allow_is_an_error() -> None:
    with pytest.raises(OverflowError, match="more than 2 GiB"):
        repeated("x" * 1024, pa.string(), 2**21)


def test_samples_are_written_without_pandas() -> None:
    program = """
import sys
from airloom.measure.tool import labelled, series
from airloom.results.samples import Buffer
buffer = Buffer("{}", 0)
buffer.add("flow", "rate", "bit/s", "a", [1], [2.0])
buffer.add_table("flow", series("rate", "bit/s", [1], [2.0]))
assert labelled(series("rate", "bit/s", [1], [2.0]), "flow").num_rows == 1
assert buffer.rows == 2
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
