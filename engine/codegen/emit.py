"""Programs as Python source: what the targets share.

A target prints the frame (loads, the loop over rows, where accumulators live); terms and the statements of one row look the
same on all of them.  The source is a file that runs alone: it imports the target's device functions and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .indexes.layers import asked, inserted
from .loop import (
    Apply,
    Convert,
    Doubt,
    Each,
    Function,
    Guard,
    Insertion,
    Let,
    Lookup,
    Machine,
    Name,
    Number,
    Probe,
    Search,
    Select,
    Statement,
    Term,
)
from .program import Program

# Prints a choice without a branch, of condition, yes and no
Choose = Callable[[str, str, str], str]

WRAPPED = {
    "+",
    "-",
    "*",
    "&",
    "|",
    "^",
    ">>",
    "<<",
    "//",
    "%",
}  # Numba widens these on 32 bits; the compiler narrows them again


def text(term: Term, select: Choose) -> str:
    """Return a term as a Python expression; `select` prints the target's branch-free choice."""
    match term:
        case Name():
            return term.text
        case Number(value, machine):
            return str(bool(value)) if machine is Machine.BOOL else f"np.{machine}({value!r})"
        case Convert(operand, machine):
            return f"np.{machine}({text(operand, select)})"
        case Apply():
            return _applied(term, select)
        case Select(condition, yes, no, machine):
            chosen, first, second = (text(part, select) for part in (condition, yes, no))
            if machine is Machine.BOOL:
                return f"(({chosen} & {first}) | ((not {chosen}) & {second}))"
            return select(chosen, first, second)
        case Lookup(table, index, machine):
            element = f"{table}[{text(index, select)}]"
            return f"({element} != 0)" if machine is Machine.BOOL else element
        case Function(name, args):
            return f"{name}({_listed(args, select)})"
        case Probe(layers, args, machine):
            return asked(layers, _listed(args, select), machine is Machine.BOOL)
        case Insertion(layers, args):
            return inserted(layers, _listed(args, select))
    raise TypeError(f"{term} is no term")


def _listed(args: Sequence[Term], select: Choose) -> str:
    return ", ".join([text(a, select) for a in args])


def _applied(term: Apply, select: Choose) -> str:
    operator, machine = term.operator, term.type
    args = [text(a, select) for a in term.args]
    if operator == "not":
        return f"(not {args[0]})"
    if len(args) == 1:
        return f"np.{machine}({operator}{args[0]})"
    infix = f" {operator} ".join(args)
    wrapped = machine is Machine.I32 and operator in WRAPPED
    return f"np.int32({infix})" if wrapped else f"({infix})"


def row_statements(body: Sequence[Statement], select: Choose, sink: list[str]) -> list[str]:
    """The statements of one row and the sink; what follows a guard or a loop over a build side is inside of it."""
    lines = sink
    for statement in reversed(body):
        lines = _before(statement, select, lines)
    return lines


def _before(statement: Statement, select: Choose, rest: list[str]) -> list[str]:
    """A statement and then the rest of the row's."""
    match statement:
        case Let(name, value, step):
            return [commented(f"{name.text} = {text(value, select)}", step), *rest]
        case Doubt(condition):
            line = f"doubt |= {text(condition, select)}"
            return [commented(line, "a result near 64 bits: no proof"), *rest]
        case Guard(condition, step):
            return [commented(f"if {text(condition, select)}:", step), *indent(rest, 1)]
        case Each(row, first, following, once, step):
            start = commented(f"{row.text} = {text(first, select)}", step)
            further = f"{row.text} = {text(following, select)}"
            if not once:
                return [start, f"while {row.text} >= 0:", *indent([*rest, further], 1)]
            stop = [f"if {row.text} < 0:", "    break"]
            return [start, "while True:", *indent([*rest, *stop, further, *stop], 1)]
        case Search(found, row, first, following, body, accepted, step):
            inner: list[str] = []
            for part in reversed(body):
                inner = _before(part, select, inner)
            inner += [f"if {text(accepted, select)}:", f"    {found.text} = True", "    break"]
            return [
                commented(f"{found.text} = False", step),
                f"{row.text} = {text(first, select)}",
                f"while {row.text} >= 0:",
                *indent([*inner, f"{row.text} = {text(following, select)}"], 1),
                *rest,
            ]


def nests(program: Program) -> bool:
    """Whether a row takes more than a straight line of statements, or changes an index."""
    plain = all(isinstance(s, Let | Doubt) for s in program.body)
    return not plain or program.index is not None


def commented(line: str, comment: str) -> str:
    """A line with what it stands for beside it."""
    flat = printable(" ".join(comment.split()))
    return f"{line}  # {flat[:100]}" if flat else line


def printable(words: str) -> str:
    """Text of a query as a kernel's file may hold it: nothing in it ends a comment or a docstring."""
    if not words.replace("\n", "").isprintable():
        words = "".join(c if c.isprintable() or c == "\n" else "?" for c in words)
    return words.replace("\\", "/").replace('"', "'")


def folded(fold: str, old: str, value: str) -> str:
    """Fold two values as an expression."""
    match fold:
        case "add":
            return f"{old} + {value}"
        case "min" | "max":
            return f"{fold}({old}, {value})"
        case "put":
            return value
    sign = {"or": "|", "and": "&", "xor": "^"}[fold]
    return f"{old} {sign} {value}"


def indent(lines: list[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


def header(imports: list[str], steps: str, names: list[str]) -> list[str]:
    """The top of a kernel file: a docstring of the plan's steps and what names stand for, then the imports."""
    quoted = '"""'
    words = printable("\n".join([steps.rstrip("\n"), "", *(" ".join(n.split()) for n in names)]))
    return [f"{quoted}{words.rstrip()}\n{quoted}", "", *imports, "", ""]
