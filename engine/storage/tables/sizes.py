"""What columns of Parquet files take in memory, estimated from the footers alone."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ...plan.expr import physical
from ...plan.types import INTEGER_BITS, DataType, Kind
from ..columns.encodings import Array, code_width, narrow_for
from .column_statistics import column_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...plan.expr import Value
    from ...plan.physical import RowGroups
    from .parquet import ParquetTable

FIXED_BYTES = {Kind.NULL: 1, Kind.BOOLEAN: 1, Kind.FLOAT: 4, Kind.DOUBLE: 8, Kind.DATE: 4}
WIDEST = 16  # a DECIMAL of more than 18 digits, an INTERVAL
CODE_BYTES = 4  # of a text with few values, as scans read it
OFFSET_BYTES = 4  # of any other text, beside its characters


class ColumnSizes:
    """Bytes of the columns of one table, each worked out when first asked for."""

    def __init__(self, table: ParquetTable) -> None:
        self._table = table
        self._plain: dict[str, list[list[int]]] = {}
        self._of_each: dict[tuple[str, ...], Array] = {}
        self._whole: dict[str, int] = {}
        self._narrow: dict[str, float] = {}

    def whole(self, sources: Sequence[str]) -> int:
        """All rows of some columns, as scans read them."""
        return sum(self._all_rows(source) for source in sources)

    def plain(self, sources: Sequence[str], part: RowGroups) -> int:
        """Some row groups of some columns, as scans read them."""
        columns = (self._groups(source)[part.file] for source in sources)
        return sum(sum(map(column.__getitem__, part.groups)) for column in columns)

    def of_each(self, sources: tuple[str, ...]) -> Array:
        """Some columns in each row group of all files, one after the other, as scans read them: what is in chunks is cut anew in each run."""
        if sources not in self._of_each:
            columns = (list(chain.from_iterable(self._groups(source))) for source in sources)
            count = sum(map(len, self._table.group_rows))
            self._of_each[sources] = sum(map(np.array, columns), np.zeros(count, np.int64))
        return self._of_each[sources]

    def reading(self, sources: Sequence[str], part: RowGroups, copies: int = 2) -> int:
        """What some row groups of some columns take while they are read: as in the file, unpacked, and as scans read them.

        One copy is what they take at least, whatever their compression.
        """
        return sum(
            round(
                self.plain([s], part) * (1 + copies * self._stored(s) / max(1, self._all_rows(s)))
            )
            for s in sources
        )

    def in_files(self, source: str, part: RowGroups) -> int:
        """What some row groups of a column take in their file, compressed as they are; of a column that is not in it, nothing."""
        name, footer = self._table.name_in(source, part.file), self._table.footers[part.file]
        place = column_positions(footer).get(name or "")
        places = [place]
        if place is None:  # nested, of several columns of values
            paths = ((i, footer.schema.column(i).path) for i in range(footer.num_columns))
            places = [i for i, path in paths if path.startswith(f"{name}.")]
        groups = [footer.row_group(g) for g in part.groups]
        return sum(group.column(i).total_compressed_size for group in groups for i in places)

    def narrow(self, sources: Sequence[str], rows: int) -> int:
        """So many rows of some columns, as kernels read them; more where a common step makes codes narrower."""
        return round(sum(self._encoded(source) for source in sources) * rows)

    def _stored(self, source: str) -> int:
        """All rows of a column in the files, before compression; a value that holds for a file is not in it."""
        return 0 if source in self._table.constants else sum(map(sum, self._bytes(source)))

    def _bytes(self, source: str) -> list[list[int]]:
        """What row groups say of a column; of rows that are not the table's, nothing."""
        said = iter(self._table.chunks(source).bytes)
        return [
            [next(said) * rows // max(1, stored) for rows, stored in zip(*of_file, strict=True)]
            for of_file in zip(self._table.group_rows, self._table.stored_rows, strict=True)
        ]

    def _all_rows(self, source: str) -> int:
        if source not in self._whole:
            self._whole[source] = sum(map(sum, self._groups(source)))
        return self._whole[source]

    def _groups(self, source: str) -> list[list[int]]:
        if source not in self._plain:
            data_type = self._table.types[source]
            if data_type.kind is Kind.VARCHAR and not self._is_coded(source):
                self._plain[source] = self._texts(source)
            else:
                width = plain_width(data_type)
                self._plain[source] = [
                    [rows * width for rows in groups] for groups in self._table.group_rows
                ]
        return self._plain[source]

    def _is_coded(self, source: str) -> bool:
        return source in self._table.constants or self._table.has_small_dictionary(source)

    def _texts(self, source: str) -> list[list[int]]:
        """Characters take what they take in the file, before compression, unless a dictionary makes them fewer there."""
        return [
            [nbytes + rows * OFFSET_BYTES for nbytes, rows in zip(*of_file, strict=True)]
            for of_file in zip(self._bytes(source), self._table.group_rows, strict=True)
        ]

    def _encoded(self, source: str) -> float:
        """Bytes a row in the narrowest encoding that the footers vouch for."""
        if source not in self._narrow:
            known, data_type = self._table.statistics().columns[source], self._table.types[source]
            if data_type.kind is Kind.VARCHAR:
                few = known.likely_distinct
                width = self._average(source) if few is None else float(code_width(few))
            elif data_type.kind is Kind.BOOLEAN or data_type.is_float:
                width = plain_width(data_type)
            else:
                low, high = register(known.low, data_type), register(known.high, data_type)
                width = plain_width(data_type)
                if low is not None and high is not None:
                    width = min(width, narrow_for(low, high, 1).width)
            self._narrow[source] = width if known.nulls == 0 else width + 1 / 8
        return self._narrow[source]

    def _average(self, source: str) -> float:
        return self._all_rows(source) / max(1, self._table.num_rows)


def plain_width(data_type: DataType) -> int:
    """Bytes of a value as scans read it, of a text those of a code."""
    if data_type.kind is Kind.VARCHAR:
        return CODE_BYTES
    if data_type.kind in INTEGER_BITS:
        return INTEGER_BITS[data_type.kind] // 8
    if data_type.is_decimal:
        return WIDEST if data_type.is_wide_decimal else 8
    return 8 if data_type.is_ticks else FIXED_BYTES.get(data_type.kind, WIDEST)


def register(value: Value, data_type: DataType) -> int | None:
    """Return a bound in the units of codes; None where it is unknown."""
    found = physical(value, data_type)
    return found if isinstance(found, int) else None
