"""A4: strptime left out what it did not know and took formats whose parts do not go together."""

import duckdb
import pytest

import fuseline
from tests.compare import assert_same_as_duckdb

READ = [
    "'12-3', '%V-%u'", "'1 3', '%U %w'", "'2020 5 3', '%Y %U %w'", "'3', '%u'", "'5', '%G'", "'1 2', '%f %f'",
]  # fmt: skip
REFUSED = [
    "'1 1', '%u %u'", "'2020 1', '%Y %V'", "'1 2020', '%U %G'", "'1 1', '%j %W'", "'13 PM', '%H %p'", "'\u0665', '%d'",
]  # fmt: skip


@pytest.mark.parametrize("arguments", READ)
def test_read_as_by_duckdb(arguments):
    assert_same_as_duckdb(f"select strptime({arguments}), try_strptime({arguments})")


@pytest.mark.parametrize("arguments", REFUSED)
def test_refused_as_by_duckdb(arguments):
    with fuseline.connect(device="cpu") as connection:
        with pytest.raises(duckdb.Error):
            duckdb.sql(f"select strptime({arguments})").fetchall()
        with pytest.raises(fuseline.FuselineError):
            connection.sql(f"select strptime({arguments})").fetchall()
    assert_same_as_duckdb(f"select try_strptime({arguments})")
