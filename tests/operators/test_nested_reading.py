"""Tests of text that is read as lists, structs and maps: quotes, brackets and backslashes as DuckDB reads them."""

import pytest

from fuseline.operators.cpu.functions.nested import nested_reading
from fuseline.plan.types import VARCHAR, struct_of
from tests.compare import assert_same_as_duckdb

LISTS = (
    r"[a\"b\"c, d]", r"""[a'b'c, "d"e]""", r"[a\,b]", r'["a\,b", \\]', r"[x[y, z], w]", r"[x[y, z]",
    r'["open]', r'["end\"]', r'[x]"', "[a,]", "[,]", "[]", "[ ]", "[a] b", " [a] ", "[null, 'null', NULL x]",
    r"[{a: 'b]'}, (c]", r"[(c, \"), d]", r"[a ' b ' c]", "[\u00a0a]", "", "[", "]",
)  # fmt: skip
STRUCTS = (
    "{a: x, b: 1}", "{b: 2}", "{A: x}", "{a: x, a: y}", "{a: x,}", "{}", "{ }", "{'a': 'x''y'}", r"{'a\"': 1}",
    '{a: "x "y"}', "{a: [b: 2}", "(x, 5)", "(x)", "()", "(x, 5, 6)", "(x,)", "(x, 5, )", "(,)", "(x,,)", "{a, b: 1}", '{a: "p:q", b:3}', "{[a: x}",
)  # fmt: skip
MAPS = (
    "{a=1}",
    "{a==1}",
    "{a=1, a=2}",
    "{NULL=1}",
    "{'NULL'=1}",
    "{a=1,}",
    "{[a=b]=1}",
    r"{\"a=1}",
    "{[a=1}",
    "{}",
    "{a=[1}",
)


@pytest.mark.parametrize(("texts", "kinds"), [
    (LISTS, ("varchar[]", "varchar[][]", "struct(a varchar)[]")),
    (STRUCTS, ("struct(a varchar, b int)", 'struct("[a" varchar)', "struct(a varchar[], b varchar)")),
    (MAPS, ("map(varchar, int)", "map(varchar[], varchar)")),
])  # fmt: skip
def test_text_is_cut_as_duckdb_cuts_it(texts: tuple[str, ...], kinds: tuple[str, ...]) -> None:
    for kind in kinds:
        query = f"select s, try_cast(s as {kind}) as v, try_cast(v::varchar as {kind}) is not distinct from v from t"
        assert_same_as_duckdb(query, {"t": {"s": [*texts, None]}}, backend="cpu")


def test_brackets_in_the_name_of_a_field_are_looked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They close nothing: a search behind each of them took 9 s for 8,000."""
    monkeypatch.setattr(nested_reading, "_behind_brackets", lambda *_: pytest.fail("searched"))
    name = "[{(" * 50_000
    assert nested_reading.parts(f"{{{name}: x}}", struct_of([(name, VARCHAR)])) == ["x"]
