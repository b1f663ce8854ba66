"""Columns of samples, made from NumPy arrays without pandas.

``pa.array``, ``pa.scalar``, ``pa.repeat`` and ``Schema.empty_table`` load pandas if it is installed. That
takes 0.2 s of processor time, in the middle of a measurement.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def column(values: Any, type_: pa.DataType) -> pa.Array:
    """Returns numbers as a column.

    Raises:
        TypeError: Floats are given for a column of integers.
    """
    numbers = np.asarray(values)
    # NumPy takes an empty list for floats.
    casting: Any = "same_kind" if len(numbers) else "unsafe"
    numbers = np.ascontiguousarray(numbers.astype(type_.to_pandas_dtype(), casting=casting, copy=False))
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(numbers)])


def repeated(value: str | int, type_: pa.DataType, rows: int) -> pa.Array:
    """Returns a column with the same value in all rows.

    Raises:
        OverflowError: The texts have more than 2 GiB in all, which Arrow's offsets of 32 bits do not allow.
    """
    if isinstance(value, int):
        return column(np.full(rows, value), type_)
    encoded = value.encode()
    if rows * len(encoded) > np.iinfo(np.int32).max:
        raise OverflowError(f"{rows} rows of {value!r} are more than 2 GiB")
    ends = np.arange(rows + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(ends), pa.py_buffer(encoded * rows)])
