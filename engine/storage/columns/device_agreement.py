"""Columns on the device in the form that the workers of a cluster have agreed on (`agreement`); a bitmap of NULLs is there only where there are any."""

from __future__ import annotations

from dataclasses import replace

import pylibcudf as plc

from ...plan.arrow.arrow_arrays import array_from
from .agreement import ColumnForm, has_encoding, places_in
from .device_decode import codes_of
from .device_encode import (
    INT32,
    INT64,
    UNCHECKED,
    UNSIGNED,
    Operator,
    aligned,
    cast_to,
    code_type,
    operate,
)
from .encodings import Dictionary, EncodedColumn, Narrow


def in_form_on_device(column: EncodedColumn, form: ColumnForm) -> EncodedColumn:
    """Return a column in a form: itself where it has that already."""
    own, encoding = column.encoding, form.encoding
    if encoding is None:
        if not isinstance(own, Dictionary) or form.width <= own.width:
            return column
        wider = Dictionary(own.values, form.width)
        return replace(column, encoding=wider, codes=cast_to(column.codes, UNSIGNED[form.width]))
    if has_encoding(column, form):
        return column
    if isinstance(encoding, Dictionary):
        return replace(column, encoding=encoding, codes=_places(column, encoding))
    order = form.ascending and column.rows > 0, form.clustered and column.rows > 0
    return replace(
        column,
        encoding=encoding,
        codes=column.codes if own == encoding else _numbers(column, encoding),
        low=form.low,
        high=form.high,
        ascending=order[0],
        clustered=order[1],
    )


def _places(column: EncodedColumn, encoding: Dictionary) -> plc.Column:
    places = places_in(column.encoding, encoding)
    if not len(places) or not column.rows:
        return cast_to(column.codes, code_type(encoding))
    listed = plc.Table([plc.Column.from_arrow(array_from(places))])
    codes = plc.copying.gather(listed, cast_to(column.codes, INT32), UNCHECKED).columns()[0]
    return _without_codes_of_nulls(column, codes)


def _numbers(column: EncodedColumn, encoding: Narrow) -> plc.Column:
    own = column.encoding
    if column.nulls == column.rows:  # all codes are 0
        return cast_to(column.codes, code_type(encoding))
    codes = cast_to(column.codes, INT64)
    for operator, value in (
        (Operator.MUL, own.step),
        (Operator.ADD, own.base - encoding.base),
        (Operator.DIV, encoding.step),
    ):
        if value != (0 if operator is Operator.ADD else 1):
            codes = operate(codes, operator, value)
    return _without_codes_of_nulls(column, cast_to(codes, code_type(encoding)))


def _without_codes_of_nulls(column: EncodedColumn, codes: plc.Column) -> plc.Column:
    """The code of a NULL is 0."""
    if column.nulls:
        zero = plc.Scalar.from_py(0, codes.type())
        codes = plc.copying.copy_if_else(codes, zero, plc.unary.is_valid(codes_of(column)))
    return aligned(codes)
