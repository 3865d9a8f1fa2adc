"""strftime and strptime against DuckDB over all specifiers and pairs of them, dates of the whole range and texts of all kinds."""

from __future__ import annotations

import itertools
import random

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import ExecutionError
from fuseline.plan.functions.strptime import layout, moment
from fuseline.plan.text.number_text import NoSuchValue
from tests.compare import assert_same_as_duckdb

LETTERS = [*"YGfgUWVuwaAbhBpzZdmyHIMSjcxXT%", *(f"-{letter}" for letter in "dmyHIMSj")]
MOMENTS = (
    "1970-01-01 00:00:00", "2024-02-29 13:04:05.678901", "2023-12-31 23:59:59.999999", "2024-12-30 12:00:00",
    "2021-01-03 00:59:00.000001", "2000-01-01 11:59:59", "1999-12-31 12:30:00.5", "1900-03-01 09:08:07",
    "0001-01-01 00:00:00", "0999-10-10 10:10:10.1", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00",
    "12345-06-07 08:09:10", "290000-07-08 21:22:23", "0001-12-31 (BC) 23:00:00", "0044-03-15 (BC) 01:02:03.000004",
    "10000-02-28 (BC) 05:06:07", "290000-11-30 (BC) 15:16:17",
)  # fmt: skip
# A text that fits each specifier, and some at and beyond its limits.
FITS = {"d": "9", "m": "5", "y": "21", "Y": "2023", "G": "2019", "U": "7", "W": "8", "w": "2", "V": "11", "u": "4", "j": "77",
        "b": "Oct", "H": "13", "I": "11", "p": "PM", "M": "59", "S": "7", "f": "12", "g": "5", "a": "Mon", "B": "march"}  # fmt: skip
LIMITS = {
    "d": ["0", "31", "32", "1", "30"], "m": ["0", "12", "13", "2"], "y": ["0", "68", "69", "99"],
    "Y": ["0", "1", "9999", "1900", "-5"], "G": ["0", "9999", "1"], "U": ["0", "53", "54", "1"],
    "W": ["0", "53", "54", "1"], "w": ["0", "6", "7"], "V": ["0", "1", "53", "54"], "u": ["0", "1", "7", "8"],
    "j": ["0", "1", "365", "366", "367"], "b": ["jan", "FEB", "xyz", "December"], "H": ["0", "23", "24", "12"],
    "I": ["0", "12", "13", "1"], "p": ["am", "PM", "xm", ""], "M": ["0", "59", "60"], "S": ["59", "60"],
    "f": ["0", "999999", "1234567", "\u0665"], "g": ["999", "1000"], "a": ["tue", "tuesday"],
    "B": ["June", "may", "Jun"],
}  # fmt: skip


@pytest.fixture(scope="module")
def pair():
    values = ", ".join(f"(timestamp '{m}')" for m in MOMENTS)
    with duckdb.connect() as theirs, fuseline.connect(device="cpu") as ours:
        for connection in (theirs, ours):
            connection.execute(f"create table t as select m from (values {values}, (null)) v(m)")
        yield theirs, ours


def assert_written(pair, forms: list[str], value: str = "m") -> None:
    theirs, ours = pair
    for start in range(0, len(forms), 150):
        some = forms[start : start + 150]
        calls = ", ".join(f"strftime({value}, '{form}') as c{i}" for i, form in enumerate(some))
        query = f"select m, {calls} from t order by m"
        expected, found = theirs.sql(query).fetchall(), ours.sql(query).fetchall()
        for before, after in zip(expected, found, strict=True):
            assert dict(zip(some, before[1:], strict=True)) == dict(
                zip(some, after[1:], strict=True)
            ), before[0]


def test_strftime_writes_each_specifier_as_duckdb(pair):
    forms = [f"%{letter}" for letter in LETTERS]
    assert_written(pair, [*forms, "%n"])
    assert_written(pair, forms, "timestamp '2024-02-29 13:04:05.678901'")


def test_strftime_of_dates_is_duckdbs(pair):
    assert_written(
        pair, ["%c %f", "%x|%X", "%G-W%V-%u", "%j %U %W %w", "%-d.%-m.%Y %a %B"], "m::date"
    )


def test_strftime_writes_pairs_of_specifiers_as_duckdb(pair):
    """A fifth of them, in which each specifier is at each place."""
    pairs = list(itertools.product(LETTERS, repeat=2))[::5]
    assert [{*letters} for letters in zip(*pairs, strict=True)] == [{*LETTERS}] * 2
    assert_written(pair, [f"%{a}%{b}" for a, b in pairs])


@pytest.mark.nightly
@pytest.mark.parametrize("separator", ["", " ", "%%", "n"])
def test_strftime_writes_pairs_with_text_as_duckdb(pair, separator):
    assert_written(pair, [f"%{a}{separator}%{b}" for a, b in itertools.product(LETTERS, repeat=2)])


def expected_moment(theirs, text: str, form: str):
    try:
        return theirs.execute(f"select epoch_us(strptime(?, '{form}'))", [text]).fetchall()[0][0]
    except duckdb.ConversionException:
        return "no day of the calendar"
    except duckdb.Error:
        return None


def found_moment(text: str, form: str):
    try:
        return moment(text, layout(form))
    except NoSuchValue:
        return "no day of the calendar"


def assert_read(pair, cases) -> int:
    theirs, _ = pair
    wrong = []
    count = 0
    for text, form in cases:
        count += 1
        expected, found = expected_moment(theirs, text, form), found_moment(text, form)
        if expected != found:
            wrong.append((text, form, expected, found))
    assert not wrong, wrong[:5]
    return count


def sequences(length: int, chance: float, seed: int):
    chooser = random.Random(seed)
    for letters in itertools.product(FITS, repeat=length):
        if chooser.random() < chance:
            form = " ".join(f"%{letter}" for letter in letters)
            yield " ".join(FITS[letter] for letter in letters), form
            yield " ".join(chooser.choice(LIMITS[letter]) for letter in letters), form


def scrambled(count: int, seed: int):
    """Longer formats, without separators or with odd ones, and texts that have too much or too little."""
    chooser = random.Random(seed)
    for _ in range(count):
        letters = [chooser.choice(list(FITS)) for _ in range(chooser.randint(1, 6))]
        separator = chooser.choice(["", " ", "-", ":", " x ", "  ", "%%"])
        text = separator.replace("%%", "%").join(
            FITS[s] if chooser.random() < 0.7 else chooser.choice(LIMITS[s]) for s in letters
        )
        dashes = ["-" if s in "dmyHIMSj" and chooser.random() < 0.2 else "" for s in letters]
        form = separator.join(f"%{dash}{s}" for dash, s in zip(dashes, letters, strict=True))
        if chooser.random() < 0.2:
            text = chooser.choice([" ", "  ", "\t", "x"]) + text
        if chooser.random() < 0.2:
            text += chooser.choice([" ", "x", "0", " \n"])
        if chooser.random() < 0.1:
            form = chooser.choice([" ", "x", "%% "]) + form
        yield text, form


def test_strptime_reads_specifiers_and_pairs_as_duckdb(pair):
    assert assert_read(pair, itertools.chain(sequences(1, 1, 1), sequences(2, 1, 2))) == 924


def test_strptime_reads_odd_texts_as_duckdb(pair):
    assert_read(pair, itertools.chain(sequences(3, 0.05, 3), scrambled(500, 4)))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
def test_strptime_reads_many_texts_as_duckdb(pair, seed):
    assert_read(pair, itertools.chain(sequences(3, 0.5, seed), scrambled(5_000, seed)))


def test_strptime_of_columns_is_duckdbs(pair):
    """Through the engine: a column, constants and NULLs."""
    theirs, ours = pair
    texts = pa.table({"s": [*(t for t, _ in scrambled(300, 9)), *FITS.values(), None, ""]})
    for connection in pair:
        connection.register("texts", texts)
    forms = [
        "%Y-%m-%d", "%d %m %Y", "%V-%u", "%G %V", "%j", "%H%M%S", "%b", "%d%m", "%U", "%I %p", "%f",
    ]  # fmt: skip
    calls = ", ".join(
        f"try_strptime(s, '{f}'), try_strptime(NULL, '{f}'), try_strptime('12-3', '{f}')"
        for f in forms
    )
    query = f"select s, {calls} from texts order by s"
    assert ours.sql(query).fetchall() == theirs.sql(query).fetchall()


@pytest.mark.parametrize("form", ["", "%", "%Q", "%-a", "%-", "%n"])
def test_formats_are_checked_before_any_row(pair, form):
    _, ours = pair
    with pytest.raises(ExecutionError):
        ours.sql(f"select strptime(s, '{form}') from (values ('x')) v(s) where false")


ZONED = [
    ("%Y-%m-%d %H:%M %Z", ["2020-01-01 01:02 UTC", "2020-07-01 01:02 america/new_york", "2021-03-28 02:30 Europe/Oslo", "2021-10-31 02:30 Europe/Oslo",
                           "2020-01-01 01:02 EST", "2020-01-01 01:02  GMT  ", "2020-01-01 01:02 Etc/GMT-14", "epoch", None]),
    ("%Y %Z %z", ["2020 Europe/Oslo +05", "2020 UTC -03:30"]),
    ("%z %Z %Y", ["+05 Europe/Oslo 2020"]),
    ("%Z%Y", ["UTC2020", "EuropeOslo2020"]),
    ("%Y %Z.", ["2020 CET."]),
    ("%a, %d %b %Y %H:%M:%S %Z", ["Wed, 21 Oct 2015 07:28:00 GMT"]),
    ("%Y %Z", ["2020 ", "2020", "2020 UT.C", "2020 Nowhere/There", "2020 UT:C", "2020 UT\u00e9"]),
]  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "Europe/Oslo"])
@pytest.mark.parametrize(("form", "texts"), ZONED)
def test_names_of_zones(form: str, texts: list[str | None], zone: str) -> None:
    setup = [f"set timezone = '{zone}'"]
    query = f"select try_strptime(s, '{form}')::varchar as found, typeof(try_strptime(s, '{form}')) as kind from t"
    assert_same_as_duckdb(
        query, {"t": pa.table({"s": texts})}, setup=setup, fuse=("always", "never")
    )
    if all(text and text.endswith(("UTC", "GMT")) for text in texts[-1:]):
        assert_same_as_duckdb(query.replace("try_", ""), {"t": pa.table({"s": texts})}, setup=setup)


def test_the_epoch_and_infinity_are_read_in_any_format(pair):
    theirs, ours = pair
    calls = "strptime(s, '%Y')::varchar, try_strptime(s, ['%d', '%m'])::varchar"
    query = f"select {calls} from (values (' Infinity'), ('-INFINITY '), (' Epoch ')) v(s)"
    assert ours.sql(query).fetchall() == theirs.sql(query).fetchall()


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "form", ["%Y-%m-%d %H", "%-d.%B.%y %p", "%H:%M", "%x %X", "%j %f", "week", "%g"]
)
def test_moments_of_which_many_are_written_alike(form: str) -> None:
    """They are written once, from `FEW_FORMATTED` rows on; infinite ones and NULL not at all."""
    moments = [
        f"2023-12-{1 + i % 31:02d} {i % 24:02d}:{i % 3:02d}:59.{i % 2}5" for i in range(9000)
    ]
    moments[7::100] = ["infinity"] * 90
    moments[8::100] = [None] * 90
    moments[9] = "0044-03-15 (BC) 01:02:03"
    tables = {"t": {"m": moments[10:]}, "u": {"m": moments}}
    query = f"select strftime(m, '{form}') as x, count(*) as n from (select m::timestamp as m from {{}}) group by all"
    for table in tables:
        assert_same_as_duckdb(query.format(table), tables, backend="cpu", fuse=("always", "never"))
    assert_same_as_duckdb(f"select strftime(m::date, '{form}') as x from t", {"t": {"m": [m and m[:10] for m in moments[9:] if m != "infinity"]}}, backend="cpu")  # fmt: skip


PLAIN_SIGNS = ["-", "", ".", "-.", "5.", ".5", "-.5", "--1", "1-2", "-5.", "00012", "1.2.3", "-0", "-0.0", "0", "127", "-129", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
    "123456789012345678901234567890", "0.1234567890123456789012345", "99999999999999999999999999.5", "2024-1-01", "2024-02-30", "0000-01-01", "2024-12-31", "2024-00-01", "20240-1-01", "2024--1-01",
    "-024-01-01", "2024-01-0:", None]  # fmt: skip


def test_texts_of_the_signs_of_plain_values() -> None:
    """A column that has no others is read at once, and not if Arrow refuses one of them."""
    types = ("tinyint", "utinyint", "integer", "bigint", "ubigint", "hugeint", "float", "double", "date", "decimal(9, 2)")  # fmt: skip
    items = ", ".join(f"try_cast(s as {kind}) as x{n}" for n, kind in enumerate(types))
    for text in PLAIN_SIGNS:
        for beside in ("12", "2024-02-29", ""):
            table = pa.table({"s": pa.array([beside, text, beside], pa.string()).slice(0 if beside else 1, 2)})  # fmt: skip
            assert_same_as_duckdb(f"select {items} from t", {"t": table}, backend="cpu")
