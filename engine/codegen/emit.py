"""Programs as Python source: what the targets share.

A target prints the frame (loads, the loop over rows, where accumulators live); terms and the statements of one row look the
same on all of them.  The source is a file that runs alone: it imports the target's device functions and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from .loop import Apply, Convert, Function, Lookup, Machine, Name, Number, Select, Term
from .steps import Program

WRAPPED = {
    "+",
    "-",
    "*",
    "&",
    "|",
    "^",
    ">>",
    "<<",
}  # Numba widens these on 32 bits; the compiler narrows them again


def text(term: Term, select: Callable[[str, str, str], str]) -> str:
    """Return a term as a Python expression; `select` prints the target's branch-free choice."""

    def show(t: Term) -> str:
        match t:
            case Name(name):
                return name
            case Number(value, Machine.BOOL):
                return str(bool(value))
            case Number(value, machine):
                return f"np.{machine.value}({value!r})"
            case Apply("not", (operand,)):
                return f"(not {show(operand)})"
            case Apply(operator, (operand,), machine):
                return f"np.{machine.value}({operator}{show(operand)})"
            case Apply(operator, args, machine):
                infix = f" {operator} ".join(show(a) for a in args)
                if machine is Machine.I32 and operator in WRAPPED:
                    return f"np.int32({infix})"
                return f"({infix})"
            case Select(condition, yes, no, Machine.BOOL):
                chosen = show(condition)
                return f"(({chosen} & {show(yes)}) | ((not {chosen}) & {show(no)}))"
            case Select(condition, yes, no):
                return select(show(condition), show(yes), show(no))
            case Convert(operand, machine):
                return f"np.{machine.value}({show(operand)})"
            case Lookup(table, index, Machine.BOOL):
                return f"({table}[{show(index)}] != 0)"
            case Lookup(table, index):
                return f"{table}[{show(index)}]"
            case Function(name, args):
                return f"{name}({', '.join(show(a) for a in args)})"
        raise TypeError(f"{t} is no term")

    return show(term)


def row_statements(program: Program, select: Callable[[str, str, str], str]) -> list[str]:
    """The statements of one row up to the sink: named values, filters, the doubt."""
    lines = [
        _commented(f"{let.name.text} = {text(let.value, select)}", let.step) for let in program.body
    ]
    if program.doubt is not None:
        lines.append(
            _commented(f"doubt |= {text(program.doubt, select)}", "a result near 64 bits: no proof")
        )
    return lines


def _commented(line: str, comment: str) -> str:
    flat = printable(" ".join(comment.split()))
    return f"{line}  # {flat[:100]}" if flat else line


def printable(words: str) -> str:
    """Text of a query as a kernel's file may hold it: nothing in it ends a comment or a docstring."""
    shown = "".join(c if c.isprintable() or c == "\n" else "?" for c in words)
    return shown.replace("\\", "/").replace('"', "'")


def folded(fold: str, old: str, value: str) -> str:
    """Fold two values as an expression."""
    match fold:
        case "add":
            return f"{old} + {value}"
        case "min" | "max":
            return f"{fold}({old}, {value})"
    sign = {"or": "|", "and": "&", "xor": "^"}[fold]
    return f"{old} {sign} {value}"


def indent(lines: list[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


def header(imports: list[str], steps: str, names: list[str]) -> list[str]:
    """The top of a kernel file: a docstring of the plan's steps and what names stand for, then the imports."""
    quoted = '"""'
    words = printable("\n".join([steps.rstrip("\n"), "", *(" ".join(n.split()) for n in names)]))
    return [f"{quoted}{words.rstrip()}\n{quoted}", "", *imports, "", ""]


def accumulator_slots(program: Program) -> list[tuple[str, int]]:
    """For each accumulator the array that holds it (`out_i` for int64, `out_f` for float64) and its row there."""
    counts = {"out_i": 0, "out_f": 0}
    slots = []
    for accumulator in program.accumulators:
        array = "out_f" if accumulator.machine is Machine.F64 else "out_i"
        slots.append((array, counts[array]))
        counts[array] += 1
    return slots
