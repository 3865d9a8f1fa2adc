"""docs/udf.md says what is there: its examples run, and give what stands beside them."""

from __future__ import annotations

import ast
import re

from tests.test_layout import ROOT

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/udf.md").read_text(), re.DOTALL)


def test_the_examples_give_what_is_said() -> None:
    known: dict[str, object] = {"__name__": "docs.udf"}
    said = 0
    for block in BLOCKS:
        lines = block.splitlines()
        for statement in ast.parse(block).body:
            comment = lines[(statement.end_lineno or 1) - 1].partition("  # ")[2]
            if isinstance(statement, ast.Expr) and comment:
                given = eval(compile(ast.Expression(statement.value), "udf.md", "eval"), known)
                assert repr(given) == comment.partition(":")[0]
                said += 1
            else:
                exec(compile(ast.Module([statement], []), "udf.md", "exec"), known)
    known["connection"].close()  # type: ignore[attr-defined]
    assert said == 5
