"""Methods of expressions that see other rows: `over`, and the functions and running aggregates that windows have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal as OneOf

from ...errors import InvalidQuery, WrongArguments, shown
from ...fence import fenced
from ...plan import infer
from ...plan.expr import Expr, Literal, SortKey
from ...plan.functions import WINDOW
from ...plan.types import BIGINT
from ...plan.window.window_call import SO_FAR, Exclude, Over, WindowCall, WindowFrame
from ...plan.window.windowed import FrameBounds, framed
from .unbound import Operand, Resolve, Unbound, column_operands, operand, sort_key
from .window_binding import specification, window_function, windowed, written_frame

if TYPE_CHECKING:
    from .expression import Expression

FARTHEST = 2**62
FROM_HERE = WindowFrame("rows", "current row", "unbounded following")
PEERS = WindowFrame("groups", "current row", "current row")
NEIGHBOURS = WindowFrame("rows", "preceding", "following")
Rank = OneOf["min", "max", "dense", "average", "ordinal", "percent", "cume_dist"]


@fenced
class WindowMethods(Unbound):
    """Without `over` the rows of the whole frame are seen in the order in which they come, as by OVER () in SQL."""

    def over(
        self,
        *partition_by: object,
        order_by: object = None,
        frame: Sequence[object] | None = None,
        exclude: Exclude = "no others",
    ) -> Expression:
        """OVER (PARTITION BY ... ORDER BY ... frame): the value beside each row instead of one a group.

        `order_by` is a column or a list of them, such as `col("day").desc()`.  `frame` is `(start, end)` in rows, or
        `("rows" | "range" | "groups", start, end)`: None is unbounded, 0 the current row, below 0 before it; for "range" an offset
        may be any value that the key takes, such as a timedelta.
        """
        keys = [k for part in partition_by for k in column_operands(part)]
        order = column_operands(order_by)
        bounds = None if frame is None else written_frame(frame, exclude)
        if frame is None and exclude != "no others":
            raise InvalidQuery("`exclude` goes with a `frame`.")

        def bind(resolve: Resolve) -> Expr:
            partition = tuple(k.bind(resolve) for k in keys)
            sorts = tuple(sort_key(o, o.bind(resolve)) for o in order)
            given = None if bounds is None else bounds(sorts, resolve)
            found = windowed(self.bind(resolve), partition, sorts, given)
            if found is None:
                raise InvalidQuery(
                    f"{self.name} is neither an aggregate nor a window function, so it takes no over()."
                )
            return found

        return self._new(bind, f"{self.name} OVER ({specification(keys, order)})")

    def shift(self, n: int = 1, fill: Operand = None) -> Expression:
        """The value `n` rows before, below 0 behind (LAG, LEAD), or `fill` where there is no such row."""
        if not _is_count(n) and not _is_count(-n if isinstance(n, int) else n):
            raise WrongArguments(f"shift() takes a number of rows, not {shown(n)}.")
        function, more = ("lag", [n]) if n >= 0 else ("lead", [-n])
        return self._window(function, *more, *([] if fill is None else [fill]))

    def lag(self, n: int = 1, default: Operand = None) -> Expression:
        return self.shift(n, default)

    def lead(self, n: int = 1, default: Operand = None) -> Expression:
        if not isinstance(n, int):
            raise WrongArguments(f"lead() takes a number of rows, not {shown(n)}.")
        return self.shift(-n, default)

    def diff(self, n: int = 1) -> Expression:
        """The value less the one `n` rows before."""
        return self._call("sub", self.shift(n))

    def pct_change(self, n: int = 1) -> Expression:
        """By which share of the value `n` rows before the value is larger."""
        return self._call("div", self.shift(n))._call("sub", 1)

    def rank(self, method: Rank = "min", descending: bool = False) -> Expression:
        """The place of the value in the order of all, from 1 on: RANK() OVER (ORDER BY ...); equal values share one, NULLs come last.

        `method` is "min" (the first of equal values' places), "max", "average", "dense" (DENSE_RANK), "ordinal" (ROW_NUMBER), "percent"
        (PERCENT_RANK) or "cume_dist".
        """
        names = {
            "min": "rank",
            "max": "rank",
            "average": "rank",
            "dense": "dense_rank",
            "ordinal": "row_number",
            "percent": "percent_rank",
            "cume_dist": "cume_dist",
        }
        if not isinstance(method, str) or method not in names:
            raise InvalidQuery(
                f"There is no method {shown(method)} of rank(): there are {', '.join(names)}."
            )

        def build(bound: list[Expr]) -> Expr:
            key = (SortKey(bound[0], descending),)
            _, result = infer.typed(WINDOW[names[method]], [], None)
            place = Over(WindowCall(names[method], (), result), (), key)
            if method not in ("max", "average"):
                return place
            peers = Over(WindowCall("count_star", (), BIGINT, PEERS), (), key)
            others = infer.call("sub", [peers, Literal(1, BIGINT)])
            if method == "average":
                others = infer.call("div", [others, Literal(2, BIGINT)])
            return infer.call("add", [place, others])

        return self._made(build, f"{names[method]}({self.name})")

    def first_value(self, ignore_nulls: bool = False) -> Expression:
        """The value in the first row of the frame."""
        return self._window("first_value", ignore_nulls=ignore_nulls)

    def last_value(self, ignore_nulls: bool = False) -> Expression:
        """The value in the last row of the frame, by default the current row and its peers."""
        return self._window("last_value", ignore_nulls=ignore_nulls)

    def nth_value(self, n: int, ignore_nulls: bool = False) -> Expression:
        """The value in the n-th row of the frame, from 1 on."""
        if not _is_count(n):
            raise WrongArguments(f"nth_value() takes the number of a row, not {shown(n)}.")
        return self._window("nth_value", n, ignore_nulls=ignore_nulls)

    def fill_null(
        self, value: Operand = None, strategy: OneOf["forward", "backward"] | None = None
    ) -> Expression:
        """COALESCE: `value` where this is NULL, or by `strategy` the last value before it ("forward") or the next one ("backward")."""
        if (value is None) == (strategy is None):
            raise WrongArguments("fill_null() takes a value, or strategy=.")
        if strategy is None:
            made = self._made(lambda bound: infer.call("coalesce", bound), self.name, value)
        elif strategy == "forward":
            made = self._window("last_value", frame=SO_FAR, ignore_nulls=True)
        elif strategy == "backward":
            made = self._window("first_value", frame=FROM_HERE, ignore_nulls=True)
        else:
            raise InvalidQuery(f'`strategy` is "forward" or "backward", not {shown(strategy)}.')
        return replace(made, name=self.name, rename_=self.rename_)

    def forward_fill(self) -> Expression:
        return self.fill_null(strategy="forward")

    def backward_fill(self) -> Expression:
        return self.fill_null(strategy="backward")

    def cum_sum(self, reverse: bool = False) -> Expression:
        """The sum up to each row, or with `reverse` from it on."""
        return self._running("sum", reverse)

    def cum_min(self, reverse: bool = False) -> Expression:
        return self._running("min", reverse)

    def cum_max(self, reverse: bool = False) -> Expression:
        return self._running("max", reverse)

    def cum_mean(self, reverse: bool = False) -> Expression:
        return self._running("avg", reverse)

    def cum_count(self, reverse: bool = False) -> Expression:
        """How many values there are up to each row, NULLs apart."""
        return self._running("count", reverse)

    def cum_prod(self, reverse: bool = False) -> Expression:
        return self._running("product", reverse)

    def rolling_sum(
        self, window_size: int, min_samples: int | None = None, center: bool = False
    ) -> Expression:
        """The sum of the last `window_size` rows, or with `center` of the rows around.

        NULL where fewer than `min_samples` of them have a value: by default where not all have.
        """
        return self._rolling("sum", window_size, min_samples, center)

    def rolling_mean(
        self, window_size: int, min_samples: int | None = None, center: bool = False
    ) -> Expression:
        return self._rolling("avg", window_size, min_samples, center)

    def rolling_min(
        self, window_size: int, min_samples: int | None = None, center: bool = False
    ) -> Expression:
        return self._rolling("min", window_size, min_samples, center)

    def rolling_max(
        self, window_size: int, min_samples: int | None = None, center: bool = False
    ) -> Expression:
        return self._rolling("max", window_size, min_samples, center)

    def rolling_std(
        self, window_size: int, min_samples: int | None = None, center: bool = False
    ) -> Expression:
        return self._rolling("stddev_samp", window_size, min_samples, center)

    def rolling_var(
        self, window_size: int, min_samples: int | None = None, center: bool = False
    ) -> Expression:
        return self._rolling("var_samp", window_size, min_samples, center)

    def rolling_count(self, window_size: int, center: bool = False) -> Expression:
        return self._rolling("count", window_size, 0, center)

    def rolling_median(
        self, window_size: int, min_samples: int | None = None, center: bool = False
    ) -> Expression:
        return self._rolling("median", window_size, min_samples, center)

    def _window(
        self,
        function: str,
        *others: Operand,
        frame: WindowFrame | None = None,
        ignore_nulls: bool = False,
    ) -> Expression:
        if not isinstance(ignore_nulls, bool):
            raise WrongArguments(f"ignore_nulls= is True or False, not {shown(ignore_nulls)}.")
        made = window_function(function, [self, *map(operand, others)], ignore_nulls, frame)
        return self._new(made.bind, made.name)

    def _running(self, function: str, reverse: bool) -> Expression:
        bounds = FrameBounds(FROM_HERE if reverse else SO_FAR)
        name = f"cum_{function}({self.name})"
        return self._made(lambda bound: framed(infer.aggregate(function, bound[:1]), bounds), name)

    def _rolling(
        self, function: str, window_size: int, min_samples: int | None, center: bool
    ) -> Expression:
        least = window_size if min_samples is None else min_samples
        if not _is_count(window_size) or window_size < 1 or not _is_count(least):
            raise WrongArguments(
                "A rolling function takes a window_size of rows, at least 1, and min_samples."
            )
        behind = (window_size - 1) // 2 if center else 0
        before = window_size - 1 - behind
        bounds = FrameBounds(NEIGHBOURS, Literal(before, BIGINT), Literal(behind, BIGINT))

        def build(bound: list[Expr]) -> Expr:
            value = framed(infer.aggregate(function, bound[:1]), bounds)
            if least <= 0:
                return value
            known = framed(infer.aggregate("count", bound[:1]), bounds)
            enough = infer.call("ge", [known, Literal(least, BIGINT)])
            return infer.case([enough], [value], infer.literal(None))

        return self._made(build, f"rolling_{function}({self.name}, {window_size})")


def _is_count(n: object) -> bool:
    """Whether something is a number of rows that a table may have."""
    return isinstance(n, int) and not isinstance(n, bool) and 0 <= n < FARTHEST
