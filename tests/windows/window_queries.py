"""Random queries with window functions, over a table with NULLs, ties, NaN and numbers of nearly 38 digits."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa

RANKS = ("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()")
VALUES = ("v", "d", "f", "s", "n", "b", "u", "t")
NUMBERS = ("v", "f", "n", "u", "m")
PICKED = ("first_value", "last_value", "nth_value", "lag", "lead")
UNITS = ("rows", "range", "groups")
EXCLUDES = (
    "",
    "",
    "",
    " exclude current row",
    " exclude group",
    " exclude ties",
    " exclude no others",
)


def table(rows: int, seed: int) -> pa.Table:
    """Rows with a unique `id`, small groups `p` and `q`, an order key `k` with ties, and columns of all types."""
    draw = random.Random(seed)

    def column(make: object, share: float = 0.15) -> list[object]:
        return [None if draw.random() < share else make() for _ in range(rows)]  # type: ignore[operator]

    large = 10**37
    data = {
        "id": pa.array(draw.sample(range(rows * 3), rows), pa.int32()),
        "p": pa.array(column(lambda: draw.randint(0, 3)), pa.int64()),
        "q": pa.array(column(lambda: draw.choice("aab")), pa.string()),
        "k": pa.array(column(lambda: draw.randint(-4, 4)), pa.int32()),
        "v": pa.array(column(lambda: draw.randint(-(2**62), 2**62)), pa.int64()),
        "u": pa.array(column(lambda: draw.randint(0, 200)), pa.uint8()),
        "f": pa.array(
            column(
                lambda: draw.choice([0.0, -0.0, float("nan"), 1.5, -2.25, 1e3, draw.uniform(-9, 9)])
            ),
            pa.float64(),
        ),
        "n": pa.array(
            column(lambda: Decimal(draw.randint(-large, large)) / 100), pa.decimal128(38, 2)
        ),
        "m": pa.array(
            column(lambda: Decimal(draw.randint(-(10**6), 10**6)) / 100), pa.decimal128(9, 2)
        ),
        "s": pa.array(column(lambda: draw.choice(["", "a", "Zebra", "ß", "b" * 20])), pa.string()),
        "b": pa.array(column(lambda: draw.random() < 0.5), pa.bool_()),
        "t": pa.array(column(lambda: draw.randint(0, 10**15)), pa.timestamp("us")),
        "d": pa.array(column(lambda: draw.randint(18000, 18040)), pa.date32()),
    }
    return pa.table(data)


class Drawn:
    """One random query; the order of rows within a window is total wherever an answer could depend on it."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def text(self) -> str:
        calls = ", ".join(f"{self.call()} as c{i}" for i in range(self.draw.randint(1, 4)))
        where = self.draw.choice(
            ["", "", "", " where id % 3 <> 0", " where k > 100", " where id = 5"]
        )
        return f"select id, {calls} from t{where}"

    def call(self) -> str:
        pick = self.draw.random()
        if pick < 0.2:
            function = self.draw.choice(RANKS)
            return f"{function} over ({self.window(total='row_number' in function)})"
        if pick < 0.25:
            count = self.draw.choice(["2", "3", "100", "u + 1"])
            return f"ntile({count}) over ({self.window(total=True)})"
        if pick < 0.5:
            return self.picked()
        return self.aggregate()

    def picked(self) -> str:
        function, value = self.draw.choice(PICKED), self.draw.choice(VALUES)
        args = value
        if function == "nth_value":
            args += ", " + self.draw.choice(["1", "2", "3", "u - 1", "0"])
        elif function in ("lag", "lead") and self.draw.random() < 0.6:
            args += ", " + self.draw.choice(["0", "1", "2", "5", "k", "-1"])
            if self.draw.random() < 0.5:
                args += f", {value}"
        if self.draw.random() < 0.3:
            args += " ignore nulls"
        return f"{function}({args}) over ({self.window(total=True, frames=True)})"

    def aggregate(self) -> str:
        function = self.draw.choice(
            [
                "count",
                "sum",
                "avg",
                "min",
                "max",
                "count_star",
                "any_value",
                "bool_and",
                "bit_xor",
                "bit_or",
                "stddev_samp",
                "var_pop",
                "corr",
                "covar_samp",
                "median",
                "quantile_disc",
                "mode",
                "string_agg",
                "arg_min",
                "arg_max",
                "count_if",
                "product",
            ]
        )
        number = self.draw.choice(NUMBERS)
        arguments = {
            "count_star": "*", "bool_and": "b", "count_if": "b", "bit_xor": "v", "bit_or": "u",
            "corr": "u, k", "covar_samp": "u, k", "stddev_samp": "u", "var_pop": "m", "product": "k",
            "median": self.draw.choice(["u", "m", "k"]), "quantile_disc": f"{self.draw.choice('udk')}, 0.3",
            "mode": "id", "string_agg": "s, '-'", "arg_min": "s, id", "arg_max": "v, id",
            "sum": self.draw.choice("ufm"), "avg": self.draw.choice("vufm"),
            "min": self.draw.choice(VALUES), "max": self.draw.choice(VALUES), "any_value": "s",
        }.get(function, number)  # fmt: skip
        total = function in ("any_value", "string_agg", "mode")
        distinct = ""
        if function in ("count", "sum", "avg", "min") and self.draw.random() < 0.25:
            distinct = "distinct "
        if function == "sum" and self.draw.random() < 0.3:
            arguments = "v"
        if function == "count" and self.draw.random() < 0.5:
            arguments = self.draw.choice(VALUES)
        condition = (
            f" filter (where {self.draw.choice(['k > 0', 'b', 'id % 2 = 0'])})"
            if self.draw.random() < 0.2
            else ""
        )
        name = "count" if function == "count_star" else function
        return f"{name}({distinct}{arguments}){condition} over ({self.window(total=total, frames=True)})"

    def window(self, *, total: bool, frames: bool = False) -> str:
        parts = self.draw.choice(["", "", "p", "q", "p, q", "id"])
        text = f"partition by {parts} " if parts else ""
        unit = self.draw.choice(UNITS) if frames and self.draw.random() < 0.75 else ""
        offsets = unit == "range" and self.draw.random() < 0.6
        if offsets:
            key, steps = self.draw.choice(
                [
                    ("k", ["1", "2", "0", "u"]),
                    ("m", ["10.5", "3000"]),
                    ("d", ["3", "interval 1 day", "interval 1 month"]),
                    ("t", ["interval 90 day", "interval 3 hour"]),
                    ("f", ["1.5", "100"]),
                    ("id", ["3", "u"]),
                ]
            )
            if total:
                key, steps = "id", ["3", "10", "0"]
            return f"{text}order by {key}{self.direction()} {self.frame(unit, steps)}"
        keys = (
            [self.draw.choice(["k", "s", "f", "d", "k, s", "n", "-k"])]
            if self.draw.random() < 0.85
            else []
        )
        if (
            total or unit == "rows" or (unit and not (keys or text))
        ):  # sqlglot reads `(groups` as a name
            keys.append("id")
        if keys:
            text += "order by " + ", ".join(
                f"{key}{self.direction()}" for key in ", ".join(keys).split(", ")
            )
        return (
            f"{text} {self.frame(unit, ['0', '1', '2', '7', 'coalesce(u, 0) % 3'])}"
            if unit
            else text
        )

    def direction(self) -> str:
        return self.draw.choice(
            ["", "", " desc", " nulls first", " desc nulls last", " desc nulls first"]
        )

    def frame(self, unit: str, steps: list[str]) -> str:
        sides = [
            "unbounded preceding",
            "{} preceding",
            "current row",
            "{} following",
            "unbounded following",
        ]
        first = self.draw.randint(0, 3)
        last = self.draw.randint(max(first, 1), 4)
        start, end = (sides[i].format(self.draw.choice(steps)) for i in (first, last))
        exclude = self.draw.choice(EXCLUDES)
        if end == "current row" and self.draw.random() < 0.3:
            return f"{unit} {start}{exclude}"
        return f"{unit} between {start} and {end}{exclude}"
