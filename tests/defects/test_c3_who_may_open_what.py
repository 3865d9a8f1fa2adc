"""C3: any SQL text opened any path and told whether it was there; settings were anybody's to change."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import AccessDenied, FuselineError


def test_a_path_outside_is_refused_alike_whether_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with fuseline.connect("cpu", external_access=False) as connection:
        messages = []
        for _ in range(2):
            with pytest.raises(AccessDenied) as refused:
                connection.sql(f"select * from '{path}'").to_arrow()
            messages.append(str(refused.value))
            path.unlink(missing_ok=True)
        assert messages[0] == messages[1]
        assert connection.sql("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize("name", ["cache_dir", "spill_dir", "history"])
def test_sql_names_no_folder(tmp_path: Path, name: str) -> None:
    with fuseline.connect("cpu") as connection:
        with pytest.raises(FuselineError):
            connection.execute(f"set {name} = '{tmp_path / 'made'}'")
        assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "text", ["set external_access = true", "set allowed_paths = '/'", "set lock_settings = false"]
)
def test_sql_takes_no_lock_off(text: str) -> None:
    with fuseline.connect("cpu", external_access=False, lock_settings=True) as connection:
        with pytest.raises(FuselineError):
            connection.execute(text)
        with pytest.raises(AccessDenied):
            connection.sql("select * from '/etc/hostname.parquet'").to_arrow()
