"""The shell, asked as a pipe or a file asks it, in this process; `test_shell_terminal.py` types into it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import fuseline
from fuseline.cli.shell.completions import completions
from fuseline.cli.shell.output_modes import MODES
from fuseline.cli.shell.prompts import is_entered, make_private
from fuseline.cli.shell_commands import run_shell


class Shell:
    """Runs texts as `fuseline shell -c` does, with what was printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.errors = ""
        self.healthy = True

    def __call__(self, text: str, **options: Any) -> str:
        connection = fuseline.connect("cpu")
        begin_with = options.pop("begin_with", {})
        self.healthy = run_shell(connection, begin_with=begin_with, commands=[text], **options)
        printed, self.errors = self._capsys.readouterr()
        return printed


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


ROWS = """select * from (values (1, 'p|q', null), (2, 'a,"b"', 1.5), (3, '', -0.5)) v(i, "the text", d) order by i;"""
WRITTEN = {
    "markdown": ["| i | the text | d |", "| --: | --- | --: |", "| 1 | p\\|q | NULL |", '| 2 | a,"b" | 1.5 |', "| 3 |  | -0.5 |"],
    "line": [
        *("       i = 1", "the text = p|q", "       d = NULL", "", "       i = 2", 'the text = a,"b"', "       d = 1.5", ""),
        *("       i = 3", "the text = ", "       d = -0.5"),
    ],
    "jsonlines": [
        '{"i": 1, "the text": "p|q", "d": null}', '{"i": 2, "the text": "a,\\"b\\"", "d": 1.5}', '{"i": 3, "the text": "", "d": -0.5}',
    ],
    "csv": ["i,the text,d", "1,p|q,", '2,"a,""b""",1.5', '3,"",-0.5'],
    "tsv": ["i\tthe text\td", "1\tp|q\t", '2\t"a,""b"""\t1.5', '3\t""\t-0.5'],
    "list": ["i|the text|d", "1|p|q|NULL", '2|a,"b"|1.5', "3||-0.5"],
    "html": [
        "<table>", "<tr><th>i</th><th>the text</th><th>d</th></tr>", "<tr><td>1</td><td>p|q</td><td>NULL</td></tr>",
        "<tr><td>2</td><td>a,&quot;b&quot;</td><td>1.5</td></tr>", "<tr><td>3</td><td></td><td>-0.5</td></tr>", "</table>",
    ],
    "trash": [],
}  # fmt: skip


@pytest.mark.parametrize("mode", WRITTEN)
def test_a_mode_writes_rows(mode: str, shell: Shell) -> None:
    assert shell(f".mode {mode}\n{ROWS}").splitlines() == WRITTEN[mode]


def test_every_mode_is_tried_and_takes_no_rows(shell: Shell) -> None:
    assert {*MODES} == {*WRITTEN, "table", "json"}
    assert json.loads(shell(f".mode json\n{ROWS}"))[1] == {"i": 2, "the text": 'a,"b"', "d": 1.5}
    for mode in MODES:
        printed = shell(f".mode {mode}\nselect 1 as one where false;")
        assert shell.healthy
        assert "1" not in printed


def test_a_table_has_types_and_escapes_what_steers_terminals(shell: Shell) -> None:
    printed = shell("select 1 as a, chr(27) || '[2J' || chr(10) as b;")
    assert "\x1b" not in printed
    assert [line.split() for line in printed.splitlines()[1:5:3]] == [
        ["│", "a", "│", "b", "│"],
        ["│", "1", "│", "\\x1b[2J\\n", "│"],
    ]


def test_wide_and_long_tables_are_cut_in_the_middle(shell: Shell) -> None:
    columns = ", ".join(f"i + {n} as column_{n}" for n in range(30))
    printed = shell(f".maxwidth 60\n.maxrows 6\nselect {columns} from range(50) r(i);")
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[-1] == "50 rows, 6 shown, 30 columns, 4 shown"
    assert lines[1].split() == [
        "│",
        "column_0",
        "│",
        "column_1",
        "│",
        "│",
        "column_28",
        "│",
        "column_29",
        "│",
    ]
    assert lines[2].split() == [
        "│",
        "bigint",
        "│",
        "bigint",
        "│",
        "…",
        "│",
        "bigint",
        "│",
        "bigint",
        "│",
    ]
    first = [line.split()[1] for line in lines[4:-2]]
    assert first == ["0", "1", "2", "…", "47", "48", "49"]


def test_long_texts_are_cut_before_columns_go(shell: Shell) -> None:
    printed = shell(".maxwidth 50\nselect repeat('x', 200) as a, 'short' as b;")
    assert "x" * 30 + "…" in printed
    assert "short" in printed
    printed = shell(".width 3\nselect 'abcdef' as a, 'abcdef' as b;")
    assert [w for w in printed.splitlines()[4].split() if w != "│"] == ["ab…", "abcdef"]


def test_of_very_many_rows_the_first_are_shown(shell: Shell) -> None:
    printed = shell(".maxrows 3\nfrom range(20000);")
    assert "the first 3 of more than 10,000 rows" in printed
    assert len(printed.splitlines()) == 9
    assert len(shell(".maxrows all\nfrom range(12000);").splitlines()) == 12005


def test_what_stands_for_null(shell: Shell) -> None:
    text = "select null as n, 'NULL' as t;"
    assert shell(f".mode csv\n{text}").splitlines()[1] == ",NULL"
    assert shell(f".mode csv\n.nullvalue NULL\n{text}").splitlines()[1] == 'NULL,"NULL"'
    assert "| - | NULL |" in shell(f".mode markdown\n.nullvalue -\n{text}")


SCHEMA = 'create table t(a int primary key, "B b" text);\ncreate view v as select 1 as one;\n'


def test_tables_and_schema(shell: Shell) -> None:
    assert shell(f"{SCHEMA}.tables").split() == ["t", "v"]
    assert shell(f"{SCHEMA}.tables t%").split() == ["t"]
    printed = shell(f"{SCHEMA}.schema")
    assert printed.startswith("CREATE TABLE")
    assert '"B b"' in printed
    assert "CREATE VIEW" in printed
    assert printed.count(";\n") == 2


def test_schema_of_a_registered_table(capsys: pytest.CaptureFixture[str]) -> None:
    connection = fuseline.connect("cpu")
    connection.register("held", {"x": [1]})
    run_shell(connection, begin_with={}, commands=[".schema held"])
    assert capsys.readouterr().out == "CREATE TABLE held(x BIGINT);\n"
    assert connection.is_closed


def test_several_statements_each_answer_up_to_one_that_fails(shell: Shell) -> None:
    printed = shell(".mode csv\nselect 1 as a; select 2 as b;\nselect nothing; select 3;\nselect 4")
    assert printed.split() == ["a", "1", "b", "2"]
    assert "UnknownColumn" in shell.errors
    assert not shell.healthy


def test_a_pipe_goes_on_behind_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "select ';\n' as a -- ;\n;\n\nselect x;\n.nosuch\n.mode csv\nselect 42 as b"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert not run_shell(fuseline.connect("cpu"), begin_with={})
    printed, errors = capsys.readouterr()
    assert printed.endswith("b\n42\n")
    assert "fuseline>" not in printed
    assert 'There is no column "x"' in errors
    assert 'There is no command ".nosuch"' in errors


def test_leaving(shell: Shell) -> None:
    for word in (".quit", ".exit", "quit", "exit;", ".q"):
        assert shell(f".print before\n{word}\n.print after") == "before\n"


def test_files_are_read_and_written(shell: Shell, tmp_path: Path) -> None:
    script, out, once = (tmp_path / name for name in ("s.sql", "out.csv", "once.json"))
    script.write_text("create table t as select 7 as a;\n.mode csv\nfrom t;\n")
    printed = shell(
        f".read {script}\n.output {out}\nselect 1 as x;\nselect 2 as y;\n.output\nfrom t;\n.once {once}\nfrom t;\nfrom t;"
    )
    assert printed.split() == ["a", "7", "a", "7", "a", "7"]
    assert out.read_text().split() == ["x", "1", "y", "2"]
    assert once.read_text().split() == ["a", "7"]
    assert sorted(tmp_path.iterdir()) == [once, out, script]  # no temporary name is left
    assert shell("select a from t;", init=[script]).split()[-2:] == ["a", "7"]


def test_a_file_that_reads_itself_ends(shell: Shell, tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text(f".read {script}\n")
    shell(f".read {script}")
    assert "from within itself" in shell.errors
    shell(f".read {tmp_path}/none.sql")
    assert "cannot be read" in shell.errors


def test_files_that_queries_may_not_open_are_none_of_the_shell_either(
    shell: Shell, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.sql"
    secret.write_text("select 77;")
    for line in (
        f".read {secret}",
        f".output {tmp_path}/new",
        f".once {tmp_path}/new",
        f".open {tmp_path}/x.csv",
    ):
        printed = shell(f"set external_access = false;\n{line}\n.print on")
        assert "AccessDenied" in shell.errors, line
        assert "77" not in printed
    assert not (tmp_path / "new").exists()
    with fuseline.connect("cpu", external_access=False) as connection:
        assert completions(f"from '{tmp_path}/sec", connection)[1] == []


def test_open_begins_anew(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("a,b\n1,2\n")
    printed = shell(
        f"{SCHEMA}set threads = 1;\n.open {tmp_path}/sales.csv\n.tables\n.mode csv\nfrom sales;\nselect value from duckdb_settings() where name = 'threads';"
    )
    assert printed.split() == ["sales", "a,b", "1,2", "value", "1"]
    assert shell(f"{SCHEMA}.open\n.tables").split() == []
    for _ in range(2):
        shell(f".open {tmp_path}/shop\ncreate table if not exists kept as select 1 as a;")
    assert shell(f".open {tmp_path}/shop\n.tables\n.open\n.tables").split() == ["kept"]


def test_plans_and_profiles(shell: Shell) -> None:
    assert "RangeScan" in shell("explain from range(3);")
    assert "│" not in shell("explain from range(3);")
    printed = shell(
        "from range(3);\n.explain logical\n.profile\n.profile on\n.mode trash\nfrom range(4);"
    )
    assert printed.count("planning") == 2
    shell(".profile")
    assert "There is no query yet" in shell.errors
    shell("from range(3);\n.explain none")
    assert "There is no stage 'none'" in shell.errors


@pytest.mark.parametrize(("line", "said"), [
    (".mode latex", "There is no mode 'latex': the modes are table, markdown"), (".maxrows x", "takes whole numbers"),
    (".timer maybe", "takes on or off"), (".once", ".once takes the path"), (".output |less", "not to a program"),
    (".mode a b", "no more than 1"), (".print 'x", "a quote that does not end"), (".e", "could be"), (".read", ".read takes FILE"),
])  # fmt: skip
def test_commands_say_what_they_take(line: str, said: str, shell: Shell) -> None:
    shell(line)
    assert said in shell.errors
    assert not shell.healthy


def test_switches(shell: Shell) -> None:
    printed = shell(
        ".timer on\n.echo on\n.headers off\n.mode csv\nselect 1 as a;\n.print x y\n.mode"
    )
    assert printed.splitlines()[0] == "select 1 as a;"
    assert printed.splitlines()[1] == "1"
    assert " ms on the cpu" in printed.splitlines()[2]
    assert printed.splitlines()[3:] == ["x y", "csv"]
    assert (
        shell("select 1 as a;", begin_with={"mode": "csv", "headers": False, "nullvalue": "-"})
        == "1\n"
    )
    assert ".schema" in shell(".help")
    assert shell(".help pager").count("\n") == 1


@pytest.mark.parametrize(("text", "start", "words"), [
    ("select s.c", 9, []), (".mode mark", 6, ["markdown"]), (".sch", 0, [".schema"]), ("set enable_p", 4, ["enable_progress_bar"]),
    ("from sal", 5, ["sales"]), ("select * from read_pa", 14, ["read_parquet("]), ("select reg", 7, ["regexp_"]),
    ("select * from sales where ci", 26, ["city"]), ("select * from sales x where x.so", 30, ["sold"]),
    ("select q.on from (select 1 as one) q where q.o", 45, ["one"]), ("SEL", 0, ["SELECT"]), ("sel", 0, ["select"]),
    ("select 'it", 8, []), ("select \"a", 9, []), (".timer o", 7, ["on", "off"]), (".schema s", 8, ["sales"]),
    ("select r.ra from range(3) r where r.", 36, ["range"]), ('from "A b" where "A b".', 23, ["x y"]),
])  # fmt: skip
def test_what_may_follow(text: str, start: int, words: list[str]) -> None:
    with fuseline.connect("cpu") as connection:
        connection.register("sales", {"city": ["Oslo"], "sold": [1]})
        connection.register("A b", {"x y": [1]})
        at, found = completions(text, connection)
        assert at == start
        if words:
            assert all(any(f.strip('"').startswith(w) for f in found) for w in words), found
        else:
            assert found == []


def test_files_are_completed(tmp_path: Path) -> None:
    for name in ("sales.parquet", "salt.csv", ".hidden"):
        (tmp_path / name).touch()
    (tmp_path / "sub").mkdir()
    with fuseline.connect("cpu") as connection:
        at, found = completions(f"from '{tmp_path}/s", connection)
        assert found == [f"{tmp_path}/{n}" for n in ("sales.parquet", "salt.csv", "sub/")]
        assert at == len("from '")
        assert completions(f".read {tmp_path}/sal", connection)[1][1] == f"{tmp_path}/salt.csv"


def test_completing_ends_no_transaction_and_runs_nothing() -> None:
    with fuseline.connect("cpu") as connection:
        connection.execute("create table t (a int); begin")
        for text in (
            "select from nothing n where n.",
            "select from (select 1; drop table t) x where x.",
            "from read_csv('no') r where r.",
        ):
            assert completions(text, connection)[1] == []
        connection.execute("insert into t values (1); commit")
        assert completions("select from (select 1; drop table t) x where x.", connection)[1] == []
        assert connection.sql("from t").fetchall() == [(1,)]


@pytest.mark.parametrize(("text", "entered"), [
    ("select 1;", True), ("select 1", False), (".tables", True), ("", True), ("quit", True), ("select ';'", False), ("select\n1;", True),
])  # fmt: skip
def test_what_enter_ends(text: str, entered: bool) -> None:
    assert is_entered(text) is entered


def test_the_history_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history"
    assert make_private(path)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    assert make_private(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert not make_private(tmp_path)
