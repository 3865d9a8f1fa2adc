"""C4: the sources of kernels held the constants of queries, in the plan at their head and in comments."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.compare import connected

SECRET, NUMBER = "s3cret", "918273"
QUERIES = [
    f"select sum(v) from t where v > {NUMBER} and s = '{SECRET}'",
    f"select count(*) c from t where s like '%{SECRET}%' or s in ('{SECRET}', 'b')",
    f"select case when s = '{SECRET}' then {NUMBER} else v end, sum(v + {NUMBER}) from t group by 1",
    f"select sum(case when s < '{SECRET}' then v * {NUMBER} end) as total from t",
    f"select v, s from t where v <> {NUMBER} and s >= '{SECRET}'",
    f"select t.v from t join u on t.v = u.v and t.v + u.w > {NUMBER} where u.z <> '{SECRET}'",
    f"select u.z, count(*) from t left join u on t.v = u.v and u.z = '{SECRET}' group by u.z",
    f"select max(v) from t where v in (select w - {NUMBER} from u where z = '{SECRET}')",
    f"select s, sum(v) from t group by s having sum(v) > {NUMBER}",
    f"select d, count(*) from t where d > date '2019-01-23' and v between 3 and {NUMBER} group by d",
    f"select s || '{SECRET}' as made, v - {NUMBER} as w from t where v > 1 order by w limit 3",
]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES)
def test_sources_hold_no_constants(query: str, tmp_path: Path) -> None:
    days = pa.array([17_000, 18_000, 19_000, None] * 25, pa.int32()).cast(pa.date32())
    tables = {
        "t": pa.table({"v": [*range(100)], "s": [SECRET, "a", "b", None] * 25, "d": days}),
        "u": pa.table({"v": [*range(50)], "w": [*range(50)], "z": [SECRET, "b"] * 25}),
    }
    with connected(tables, fuse="always", cache_dir=tmp_path) as connection:
        connection.sql(query).to_arrow()
    sources = {path.name: path.read_text() for path in tmp_path.glob("q_*.py")}
    assert sources
    for name, text in sources.items():
        for constant in (SECRET, NUMBER, "2019"):
            assert constant not in name
            assert constant not in text, text
