"""What is made of a program once, and for as long as there is the program."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

from fuseline.codegen.cuda import emit_cuda
from fuseline.codegen.cuda.accumulator_layout import layout
from fuseline.codegen.emit import printable
from fuseline.codegen.indexes.layers import Direct
from fuseline.codegen.loop import Apply, Convert, Lookup, Machine, Name, Number, Select, subterms
from fuseline.codegen.program import Program, once
from tests.codegen.index_programs import index, main_program

DIRECT = index(Direct, False)


def test_a_function_looks_at_a_program_once() -> None:
    seen: list[Program] = []
    look = once(seen.append)
    program, other = main_program("inner", DIRECT), main_program("left", DIRECT)
    for each in (program, other, program, other):
        look(each)
    assert seen == [program, other]
    look(replace(program))
    assert len(seen) == 3


def test_a_program_that_differs_is_laid_out_anew() -> None:
    program = main_program("inner", DIRECT)
    assert layout(program) is layout(program)
    first, *others = program.relations
    many = replace(program, relations=(replace(first, rows=1 << 31), *others))
    rows = [w.cut.row for p in (program, many) if (w := layout(p)).cut is not None]
    assert rows == [Machine.I32, Machine.I64]


def test_what_was_made_keeps_no_program() -> None:
    program = main_program("inner", DIRECT)
    assert layout(program).cut is not None
    assert emit_cuda.signature(program)
    assert emit_cuda.rows_a_thread(program)
    left = weakref.ref(program)
    del program
    gc.collect()
    assert left() is None


def test_terms_come_before_their_parts() -> None:
    name, zero = Name("a", Machine.I32), Number(0, Machine.I32)
    is_less = Apply("<", (name, zero), Machine.BOOL)
    element = Lookup("t", name, Machine.I64)
    wide = Convert(zero, Machine.I64)
    term = Select(is_less, element, wide, Machine.I64)
    assert list(subterms(term)) == [term, is_less, name, zero, element, name, wide, zero]


def test_text_of_a_query_ends_no_comment_and_no_docstring() -> None:
    assert printable("a = 1\nb < 'c'") == "a = 1\nb < 'c'"
    assert printable('"""\\') == "'''/"
    assert printable("a\rb\tc\n\u2028ä€\u202e\x00") == "a?b?c\n?ä€??"
