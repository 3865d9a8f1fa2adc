"""What a text that is still written says: statements, quotes that are open, and the relations that columns may be of."""

import pytest

from fuseline.sql import ends_statement, relations, unfinished


@pytest.mark.parametrize(("text", "ends"), [
    ("select 1;", True), ("select ';'", False), ("select 1 -- ;", False), ("select ';';", True), ("select 1; -- two", True),
    ("select /* ; */ 1;", True), ("select /* ;", False), ("select $$;", False), ("select $a$;$a$;", True), ('select ";', False),
    ("select 'it''s';", True), ("", False), (";", True), ("select 1;\n\n", True), ("select 1;\nselect 2", False),
])  # fmt: skip
def test_where_a_statement_ends(text, ends):
    assert ends_statement(text) is ends


@pytest.mark.parametrize(("text", "open_quote"), [
    ("from 'a/b", "'a/b"), ("from 'a'", None), ('select "x', '"x'), ("select 1 /* c", "/* c"), ("select 'a' || 'b", "'b"),
])  # fmt: skip
def test_what_is_not_finished(text, open_quote):
    assert unfinished(text) == open_quote


@pytest.mark.parametrize(("text", "names"), [
    ("select from t where ", [("t", "t")]),
    ("select from t a join u as b on a.", [("t", "a"), ("u", "b")]),
    ("select from t, 'x.csv' x, (select 1 as q) s where", [("t", "t"), ("'x.csv'", "x"), ("(select 1 as q)", "s")]),
    ("from read_csv('a.csv') r select ", [("read_csv('a.csv')", "r")]),
    ("select from range(3) where ", [("range(3)", "range")]),
    ('from "A b" where ', [('"A b"', "A b")]),
    ("select a from t; select from u where ", [("u", "u")]),
    ("update t set ", [("t", "t")]), ("from t left join u using (k) where ", [("t", "t"), ("u", "u")]),
    ("from 'unfinished", []), ("from", []), ("select", []), ("from (select", []),
])  # fmt: skip
def test_the_relations_of_a_statement(text, names):
    assert relations(text) == names
