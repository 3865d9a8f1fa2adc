"""What sqlglot reads over in trees: a GROUP BY of nothing is refused, and formats that are empty are put back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from fuseline.errors import ParseError, Span
from fuseline.sql.parsing.pieces import Piece, span_of

_EMPTY_NEXT = re.compile(r"[^,']*,\s*''(?!')")  # the argument after this one is an empty string


def refuse_empty_group(nodes: Sequence[exp.Expr], piece: Piece) -> None:
    for node in nodes:
        if type(node) is exp.Group and not any(node.args.values()):
            place = Span(piece.start, piece.end)
            raise ParseError("Syntax error: an operand is missing after GROUP BY.", place)


def mend_empty_formats(nodes: Sequence[exp.Expr], text: str) -> None:
    """Give strftime and strptime the empty format, of which sqlglot makes 'None'."""
    for node in nodes:
        if type(node) not in (exp.TimeToStr, exp.StrToTime):
            continue
        layout, place = node.args["format"], span_of(node.this)
        if place is not None and layout.name == "None" and _EMPTY_NEXT.match(text, place.end):
            layout.set("this", "")
