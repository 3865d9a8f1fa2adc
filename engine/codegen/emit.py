"""Programs as text: as Python source, what the targets share, and as a listing.

A target prints the frame (loads, the loop over rows, where accumulators live); terms and the statements of one row look the
same on all of them.  The source is a file that runs alone: it imports the target's device functions and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..plan.text.concealed_text import concealed
from . import loop as ir
from .groups.accumulate import Accumulator
from .indexes.layers import asked, inserted
from .program import Program
from .typed_values import Input

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


def text(term: ir.Term, select: Choose) -> str:
    """Return a term as a Python expression; `select` prints the target's branch-free choice."""
    match term:
        case ir.Name():
            return term.text
        case ir.Number(value, machine):
            return str(bool(value)) if machine is ir.Machine.BOOL else f"np.{machine}({value!r})"
        case ir.Convert(operand, machine):
            return f"np.{machine}({text(operand, select)})"
        case ir.Apply():
            return _applied(term, select)
        case ir.Select(condition, yes, no, machine):
            chosen, first, second = (text(part, select) for part in (condition, yes, no))
            if machine is ir.Machine.BOOL:
                return f"(({chosen} & {first}) | ((not {chosen}) & {second}))"
            return select(chosen, first, second)
        case ir.Lookup(table, index, machine):
            element = f"{table}[{text(index, select)}]"
            return f"({element} != 0)" if machine is ir.Machine.BOOL else element
        case ir.Function(name, args):
            return f"{name}({_listed(args, select)})"
        case ir.Probe(layers, args, machine):
            return asked(layers, _listed(args, select), machine is ir.Machine.BOOL)
        case ir.Insertion(layers, args):
            return inserted(layers, _listed(args, select))
    raise TypeError(f"{term} is no term")


def _listed(args: Sequence[ir.Term], select: Choose) -> str:
    return ", ".join([text(a, select) for a in args])


def _applied(term: ir.Apply, select: Choose) -> str:
    operator, machine = term.operator, term.type
    args = [text(a, select) for a in term.args]
    if operator == "not":
        return f"(not {args[0]})"
    if len(args) == 1:
        return f"np.{machine}({operator}{args[0]})"
    infix = f" {operator} ".join(args)
    wrapped = machine is ir.Machine.I32 and operator in WRAPPED
    return f"np.int32({infix})" if wrapped else f"({infix})"


def row_statements(body: Sequence[ir.Statement], select: Choose, sink: list[str]) -> list[str]:
    """The statements of one row and the sink; what follows a guard or a loop over a build side is inside of it."""
    lines = sink
    for statement in reversed(body):
        lines = _before(statement, select, lines)
    return lines


def _before(statement: ir.Statement, select: Choose, rest: list[str]) -> list[str]:
    """A statement and then the rest of the row's."""
    match statement:
        case ir.Let(name, value, step):
            return [commented(f"{name.text} = {text(value, select)}", step), *rest]
        case ir.Doubt(condition):
            line = f"doubt |= {text(condition, select)}"
            return [commented(line, "a result near 64 bits: no proof"), *rest]
        case ir.Guard(condition, step):
            return [commented(f"if {text(condition, select)}:", step), *indent(rest, 1)]
        case ir.Each(row, first, following, once, step):
            start = commented(f"{row.text} = {text(first, select)}", step)
            further = f"{row.text} = {text(following, select)}"
            if not once:
                return [start, f"while {row.text} >= 0:", *indent([*rest, further], 1)]
            stop = [f"if {row.text} < 0:", "    break"]
            return [start, "while True:", *indent([*rest, *stop, further, *stop], 1)]
        case ir.Search(found, row, first, following, body, accepted, step):
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
    plain = all(isinstance(s, ir.Let | ir.Doubt) for s in program.body)
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


def listing(program: Program) -> str:
    """Return the program as text, a line for each input, statement, key and accumulator."""
    lines = [f"{program.name}: {operations(program)} operations a row"]
    lines += [f"  load {program.names[i.column]}: {_stored(i)}" for i in program.inputs]
    for parameter in program.parameters:
        lines.append(f"  given {parameter.name}: {parameter.machine.value} = {parameter.value!r}")
    for table in program.tables:
        lines.append(f"  given {table.name}: {len(table.array)} values of {table.machine.value}")
    lines += statements(program.body, 1)
    if program.grouping is not None:
        lines.append(f"  slot = {_shown(program.grouping.slot)}  # {_domain(program)}")
    lines += [f"  a{i} {_folded(a)}" for i, a in enumerate(program.accumulators)]
    if not program.accumulators:
        lines.append("  rows where keep")
    return "\n".join(lines)


def statements(body: Sequence[ir.Statement], depth: int) -> list[str]:
    """Return loop statements as text; what a guard or a loop holds is indented below it."""
    lines: list[str] = []
    for at, statement in enumerate(body):
        head = "  " * depth
        match statement:
            case ir.Let(name, value, step):
                lines.append(f"{head}{name.text}: {name.type.value} = {_shown(value)}{_note(step)}")
            case ir.Doubt(condition):
                lines.append(f"{head}doubt |= {_shown(condition)}")
            case ir.Guard(condition, step):
                lines.append(f"{head}where {_shown(condition)}:{_note(step)}")
                return lines + statements(body[at + 1 :], depth + 1)
            case ir.Each(row, first, following, once, step):
                kind = "or -1 once" if once else "until -1"
                loop = f"for {row.text} from {_shown(first)} by {_shown(following)}, {kind}:"
                lines.append(f"{head}{loop}{_note(step)}")
                return lines + statements(body[at + 1 :], depth + 1)
            case ir.Search(found, row, first, following, inner, accepted, step):
                loop = f"{row.text} from {_shown(first)} by {_shown(following)}"
                lines.append(f"{head}{found.text} = any {loop}:{_note(step)}")
                lines += statements(inner, depth + 1)
                lines.append(f"{head}  accepted {_shown(accepted)}")
    return lines


def _note(step: str) -> str:
    return f"  # {' '.join(step.split())}" if step else ""


def operations(program: Program) -> int:
    """Count the operations of a row that passes all filters: arithmetic, comparisons, choices, lookups and folds."""
    terms = [term for statement in program.body for term in ir.terms_of(statement)]
    if program.grouping is not None:
        terms.append(program.grouping.slot)
    for accumulator in program.accumulators:
        terms.append(accumulator.term)
        if accumulator.condition is not None:
            terms.append(accumulator.condition)
    counted = sum(
        not isinstance(part, ir.Name | ir.Number | ir.Convert)
        for term in terms
        for part in ir.subterms(term)
    )
    return counted + len(program.accumulators)


def _stored(source: Input) -> str:
    """How a column lies in memory."""
    nulls = " and a validity bit" if source.nullable else ""
    width = f"{source.width} byte{'s' if source.width > 1 else ''}{nulls}"
    if source.values is not None:
        return f"{width}, code of {len(source.values)} sorted values"
    if source.codes is None:
        return f"{width}, {'the value' if source.machine is None else source.machine.value}"
    interval = source.interval
    step = "" if source.step == 1 else f" * {source.step}"
    return f"{width}, {source.base} + code{step}, so {interval.low} to {interval.high}"


def _domain(program: Program) -> str:
    """The keys and how many values each has, which make the number of a group; or of what relation it is a row."""
    grouping = program.grouping
    assert grouping is not None
    if grouping.row is not None:
        return f"row of {grouping.groups}, which decides {', '.join(late.column.name for late in program.late)}"
    keys = ", ".join(f"{k.column.name} of {k.size}" for k in (*grouping.keys, *grouping.distinct))
    if grouping.ordered is not None:
        return f"{keys}; in the order of {grouping.ordered.key.column.name}"
    return f"{keys}; a key of a hash table" if grouping.hashed else keys


def _folded(accumulator: Accumulator) -> str:
    when = "" if accumulator.condition is None else f" if {_shown(accumulator.condition)}"
    return f"{accumulator.machine.value} {accumulator.fold} {_shown(accumulator.term)}{when}"


def _shown(term: ir.Term) -> str:
    return text(term, lambda condition, yes, no: f"({yes} if {condition} else {no})")


BUILD_COUNTS = ("rows in the index", "rows with a NULL key", "keys that were there already")
DOUBT = "doubt = False  # True once a value may not fit its type: then the answer is dropped, and operators compute it"


def legend(program: Program, places: Mapping[int, str]) -> list[str]:
    """Return a line for each argument and accumulator; `paths` says where the kernel keeps the latter, by number."""
    lines = [f"{p.name}: {p.meaning}" for p in program.parameters]
    calls = [concealed(call) for call in program.calls]
    for number, place in places.items():
        lines.append(f"{place}: {_held(program, number, calls)}")
    return lines


def _held(program: Program, number: int, calls: Sequence[str]) -> str:
    """The aggregates that read an accumulator, and which part of them it is; `calls` are all as text."""
    if program.index is not None:
        return BUILD_COUNTS[number]
    role = _role(program.accumulators[number])
    readers = [n for n, folded in enumerate(program.folded) if number in folded.accumulators]
    shown = ", ".join(dict.fromkeys(calls[n] for n in readers))
    if role == "count" and not readers:
        return "count of rows"
    if len(readers) == 1 and program.calls[readers[0]].function in (role, f"{role}_star"):
        return shown
    return f"{role} for {shown}" if shown else role


def _role(accumulator: Accumulator) -> str:
    match accumulator.fold, accumulator.term:
        case "add", ir.Number(1):
            return "count"
        case "add", ir.Apply("&", (_, ir.Number(0xFFFFFFFF))):
            return "low 32 bits of the sum"
        case "add", ir.Apply(">>", (_, ir.Number(32))):
            return "sum without its low 32 bits"
        case "add", _:
            return "sum"
    return accumulator.fold


def elements(array: str, row: int, groups: int) -> str:
    """Name the elements of a row of a flat result array."""
    return f"{array}[{row}]" if groups == 1 else f"{array}[{row * groups}:{(row + 1) * groups}]"
