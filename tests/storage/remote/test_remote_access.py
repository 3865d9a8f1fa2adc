"""Remote files are found, judged and refused as local ones are, and credentials are shown nowhere."""

from __future__ import annotations

import io
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import AccessDenied, CatalogError, FileError, FuselineError, UnknownName
from fuseline.plan.files.remote_secret import RemoteSecret
from fuseline.storage.remote.remote_access import RemoteAccess, pattern_of
from fuseline.storage.tables.access import AccessRules


def parquet(table: pa.Table | dict[str, object], **options: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(table) if isinstance(table, dict) else table, file, **options)
    return file.getvalue()


def rows(connection: fuseline.Connection, query: str) -> list[tuple[object, ...]]:
    return connection.sql(query).fetchall()


@pytest.fixture
def hive(server):
    for year in (2023, 2024):
        for month in (1, 2):
            key = f"bkt/sales/year={year}/month={month}/d.parquet"
            server.objects[key] = parquet({"v": [year * 100 + month]})
    server.objects["bkt/sales/notes.txt"] = b"no rows"
    server.objects["bkt/one two.parquet"] = parquet({"v": [7]})
    return server


@pytest.mark.parametrize(
    ("pattern", "values"),
    [
        ("s3://bkt/sales", [202301, 202302, 202401, 202402]),
        ("s3a://bkt/sales/", [202301, 202302, 202401, 202402]),
        ("s3://bkt/sales/*/month=2/*.parquet", [202302, 202402]),
        ("s3://bkt/sales/**/d.parquet", [202301, 202302, 202401, 202402]),
        ("s3://bkt/sales/year=202[!3]/*/?.parquet", [202401, 202402]),
        ("s3://bkt/one two.parquet", [7]),
    ],
)
def test_globs_and_folders_are_listed(pattern, values, hive, here) -> None:
    assert rows(here, f"select v from '{pattern}' order by v") == [(v,) for v in values]


def test_folders_of_hive_are_columns(hive, here) -> None:
    found = rows(here, "select year, month, v from 's3://bkt/sales' where year = 2024 order by v")
    assert found == [(2024, 1, 202401), (2024, 2, 202402)]
    assert rows(here, "select count(*) from glob('s3://bkt/**')") == [(6,)]
    assert rows(here, "from glob('s3://bkt/sales/nothing*')") == []


def test_a_web_server_has_files_without_lists(hive, here) -> None:
    address = hive.address
    assert rows(here, f"from '{address}/bkt/one%20two.parquet'") == [(7,)]
    with pytest.raises(FileError, match="lists no files"):
        here.sql(f"from '{address}/bkt/*.parquet'")


def test_other_formats_are_read_too(server, here) -> None:
    server.objects["bkt/a.csv"] = b"n,t\n" + b"".join(b"%d,x%d\n" % (i, i) for i in range(50_000))
    server.objects["bkt/a.json"] = b'{"n": 1}\n{"n": 2}\n'
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, pa.schema({"n": pa.int64()})) as writer:
        writer.write_table(pa.table({"n": [1, 2, 3]}))
    server.objects["bkt/a.arrow"] = sink.getvalue()
    assert rows(here, "select sum(n), max(t) from 's3://bkt/a.csv'") == [(1_249_975_000, "x9999")]
    assert rows(here, "select sum(n) from 's3://bkt/a.json'") == [(3,)]
    assert rows(here, "select sum(n) from 's3://bkt/a.arrow'") == [(6,)]
    assert rows(here, "select size, content from read_text('s3://bkt/a.json')") == [
        (18, '{"n": 1}\n{"n": 2}\n')
    ]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://bkt/no.parquet", "no file"),
        ("s3://bkt/no*.parquet", "no file that matches"),
        ("s3://other/", "no file"),
        ("s3://bkt/a/../b.parquet", "write the path out"),
        ("s3://bkt//b.parquet", "two slashes"),
        ("s3:///b.parquet", "bucket"),
        ("https://user:word@host/b.parquet", "CREATE SECRET"),
        ("http://127.0.0.1:1/b.parquet", "cannot be reached"),
        ("ftp://host/b.parquet", "are not read"),
    ],
)  # fmt: skip
def test_what_is_no_file_is_said(path, message, hive, here) -> None:
    with pytest.raises(FuselineError, match=message):
        here.sql(f"from '{path}'")


def test_what_is_not_allowed_is_refused_before_anybody_is_asked(hive, opened) -> None:
    here = opened(allowed_paths=["s3://bkt/sales/year=2024", f"{hive.address}/bkt/sales"])
    assert rows(here, "select sum(v) from 's3://bkt/sales/year=2024/*/*.parquet'") == [(404803,)]
    hive.restart()
    for path in ("s3://bkt/sales", "s3://bkt/sales/*/*/d.parquet", "s3://bkt/sales/year=20244/x.parquet",
                 "s3://bkt/one two.parquet", "S3://bkt/sales/year=2023/x.parquet", "gs://bkt/sales/year=2024/x.parquet",
                 f"{hive.address}/bkt/one%20two.parquet", f"{hive.address}/bkt/sales%2f..%2fone two.parquet",
                 f"{hive.address.replace('127.0.0.1', 'localhost')}/bkt/sales/notes.txt",
                 "/etc/passwd.parquet"):  # fmt: skip
        with pytest.raises((AccessDenied, FileError), match=r"may not be opened|\.\."):
            here.sql(f"from '{path}'")
    assert hive.asked == []


def test_without_external_access_there_is_nothing_remote(hive, opened) -> None:
    here = opened(external_access=False)
    with pytest.raises(AccessDenied):
        here.sql("from 's3://bkt/sales'")
    assert hive.asked == []


def test_paths_become_stricter_never_laxer(opened) -> None:
    here = opened(allowed_paths=["s3://bkt/sales", "/data"])
    here.execute("set allowed_paths = 's3://bkt/sales/year=2024:/data/x'")
    for laxer in ("s3://bkt/sales", "s3://bkt/sales/year=20245", "https://host:80/x:/data/x"):
        with pytest.raises(fuseline.errors.InvalidQuery, match="allowed_paths may lose"):
            here.execute(f"set allowed_paths = '{laxer}'")
    with pytest.raises(fuseline.errors.InvalidQuery, match=r"without '\.\.'"):
        here.execute("set allowed_paths = 's3://bkt/sales/year=2024/../x'")


def redirecting(target: str):
    def fault(request) -> bool:
        if not request.path.startswith("/moved"):
            return False
        request.answer(302, Location=target)
        return True

    return fault


def test_redirects_are_followed_where_they_may_lead(hive, opened) -> None:
    hive.fault = redirecting(f"{hive.address}/bkt/one%20two.parquet")
    path = f"{hive.address}/moved/a.parquet"
    assert rows(opened(), f"from '{path}'") == [(7,)]
    both = opened(allowed_paths=[f"{hive.address}/moved", f"{hive.address}/bkt"])
    assert rows(both, f"from '{path}'") == [(7,)]
    hive.restart()
    with pytest.raises(AccessDenied):
        opened(allowed_paths=[f"{hive.address}/moved"]).sql(f"from '{path}'")
    assert all("/moved" in asked for asked in hive.asked)


def test_requests_are_signed_with_the_secret_of_the_longest_scope(hive, opened) -> None:
    hive.key = "INNER"
    here = opened()
    with pytest.raises(FileError, match=r"403.*CREATE SECRET"):
        here.sql("from 's3://bkt/one two.parquet'")
    made = f"type s3, endpoint '{hive.address}', url_style path, key_id 'INNER', secret 'hush'"
    here.execute(f"create secret inner_one ({made}, scope 's3://bkt/one')")
    assert rows(here, "from 's3://bkt/one two.parquet'") == [(7,)]
    with pytest.raises(FileError, match="403"):
        here.sql("from 's3://bkt/sales'")
    here.execute("drop secret inner_one")
    with pytest.raises(FileError, match="403"):
        here.sql("from 's3://bkt/one two.parquet'")


def test_keys_of_the_environment_are_used(hive, monkeypatch) -> None:
    hive.key = "FROMENV"
    variables = {"ACCESS_KEY_ID": "FROMENV", "SECRET_ACCESS_KEY": "hush", "ENDPOINT_URL": hive.address}  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with fuseline.connect(device="cpu") as connection:
        assert rows(connection, "from 's3://bkt/one two.parquet'") == [(7,)]


def test_a_secret_takes_nothing_from_the_environment(hive, monkeypatch, opened) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "FROMENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    hive.key = "AKEY"
    assert rows(opened(), "from 's3://bkt/one two.parquet'") == [(7,)]


def test_secrets_are_listed_without_what_they_hide(here) -> None:
    here.execute("create secret web (type http, bearer_token 'hush', scope ['https://a/', 'https://b/'])")  # fmt: skip
    told = here.sql("from duckdb_secrets()").fetchall()
    assert [row[:3] for row in told] == [("__default_s3", "s3", "config"), ("web", "http", "config")]  # fmt: skip
    assert told[1][5] == ["https://a/", "https://b/"]
    assert "hush" not in repr(told)
    with pytest.raises(CatalogError):
        here.execute("create secret WEB (type s3)")
    here.execute("create secret if not exists web (type s3)")
    here.execute("drop secret web")
    here.execute("drop secret if exists web")
    with pytest.raises(UnknownName):
        here.execute("drop secret web")


@pytest.mark.parametrize(
    "text",
    [
        "create secret (type s3, key_id 'hush')",
        "create secret (type s3, secret hush, key_idd 'hush')",
        "create secret (type http, bearer_token 'hush",
        "create secret (type http, bearer_token ['hush'])",
        "create secret (type http, extra_http_headers map {'a': hush})",
        "create secret (type s33, secret 'hush')",
        "create persistent secret (type s3, secret 'hush', key_id 'hush')",
        "create secrett x (type s3, secret 'hush')",
        "create secret x (type s3, key_id 'hush', secret 'hush'); from nowhere_at_all",
        "create or replace secret (type s3, secret 'hush' 'hush')",
    ],
)
def test_no_message_has_what_a_secret_hides(text, here) -> None:
    with pytest.raises(FuselineError) as caught:
        here.sql(text)
    assert "hush" not in str(caught.value) + repr(caught.value) + str(caught.value.text)


def test_what_the_server_says_of_keys_is_not_passed_on(hive, opened) -> None:
    hive.key = "OTHER"
    with pytest.raises(FileError, match="AccessDenied") as caught:
        opened().sql("from 's3://bkt/sales/'")
    assert "AKEY" not in str(caught.value)


def test_secrets_stay_in_their_process(opened) -> None:
    rules = opened().catalog.access.rules
    assert rules.remote.secrets
    sent = pickle.dumps(rules)
    assert b"hush" not in sent
    assert pickle.loads(sent).remote == RemoteAccess(None, rules.remote.patience)
    assert "hush" not in repr(rules)


def test_a_query_in_a_url_is_shown_nowhere(hive, here) -> None:
    path = f"{hive.address}/bkt/one%20two.parquet?X-Signature=hush"
    frame = here.sql(f"from read_parquet('{path}', filename = true)")
    assert frame.fetchall() == [(7, f"{hive.address}/bkt/one two.parquet")]
    assert "hush" not in frame.explain()
    assert any("hush" in asked for asked in hive.asked)
    with pytest.raises(FileError) as caught:
        here.read_parquet(f"{hive.address}/bkt/no.parquet?X-Signature=hush")
    assert "hush" not in str(caught.value)


def test_a_secret_replaced_is_another_one() -> None:
    one, other = (RemoteSecret("a", "s3", "config", (), {"secret": s}) for s in "ab")
    assert AccessRules().with_remote((one,)) != AccessRules().with_remote((other,))


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("a/*.p", "a/b.p", "a/b/c.p"),
        ("a/**/c.p", "a/b/d/c.p", "b/c.p"),
        ("a/**", "a/b/c", "b/a"),
        ("a[0-2].p", "a1.p", "a3.p"),
        ("a[!0].p", "a1.p", "a0.p"),
        ("a.p", "a.p", "axp"),
    ],
)
def test_globs_are_read_as_by_the_shell(glob, yes, no) -> None:
    import re

    assert re.fullmatch(pattern_of(glob), yes)
    assert not re.fullmatch(pattern_of(glob), no)


def test_the_history_of_the_shell_keeps_no_secret(tmp_path) -> None:
    pytest.importorskip("prompt_toolkit", reason="the extra shell is not installed")
    from fuseline.cli.shell.prompts import kept_history

    kept = kept_history(tmp_path / "history")
    for text in (
        "select 1",
        "create secret (type s3,\n key_id 'a', secret 'hush')",
        "  secret 'hush')",
    ):
        kept.store_string(text)
    assert "select 1" in (tmp_path / "history").read_text()
    assert "hush" not in (tmp_path / "history").read_text()
