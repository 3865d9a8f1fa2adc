"""The CUDA target's loop for kernels that `warp_split` parts: rows that survive wait in a queue of their warp, in shared memory.

All lanes of a warp go through its words together, so that a vote numbers the survivors.  What is done for a survivor begins
when there is one for each lane, and at the end for those that are left.
"""

from __future__ import annotations

from dataclasses import replace

from ..emit import commented, indent, row_statements, text
from ..layers_alone import Choosing
from ..loop import Apply, Doubt, Guard, Let, Lookup, Machine, Name, Term, subterms, terms_of
from ..program import Program
from ..program_builder import ROW
from .accumulator_layout import CELL_BYTES, WAITING, WARP, Layout
from .emit_fold import select
from .vector_loads import WORD_IN_TURN, load_words, unpack
from .warp_split import Cut, asking_near, copied, only_alive

ALL_LANES = "0xFFFFFFFF"
ROWS = WORD_IN_TURN
K = "@"  # stands for the number of a row in lines that are the same for all rows of a word; no statement has one of its own
# Where a row goes in the queue: after those of the lanes before, or to an entry that nobody reads, which saves a branch
LAST = "np.int32(waiting + cuda.popc(votes & below))"
NOWHERE = f"np.int32({WAITING - 1})"


def survivors(program: Program, where: Layout, sink: list[str]) -> list[str]:
    """The loop over words, and the sink for the rows that survive."""
    cut = where.cut
    assert cut is not None
    held, copies = where.near, []
    if held is not None:
        cut, copies = replace(cut, choosing=asking_near(cut.choosing, held)), copied(held)
    return [
        *copies,
        *_queues(cut),
        f"words = (np.uint64(rows) + np.uint64({ROWS - 1})) // np.uint64({ROWS})",
        "first = thread - np.uint64(warp_lane)",
        "more = True",
        "while more:",
        "    more = first < words",
        "    if more:",
        *indent(_chosen(program, cut, where), 2),
        "        first += threads",
        f"    least = {select('more', f'np.int32({WARP})', 'np.int32(1)')}",
        "    while waiting >= least:",
        *indent(_handled(cut, where, sink), 2),
    ]


def _queues(cut: Cut) -> list[str]:
    """Arrays in shared memory, one for each field, and the part of this warp."""
    lines = [
        f"queue{i} = cuda.shared.array(0, np.{field.type.value})  # {field.text}"
        for i, field in enumerate(cut.fields)
    ]
    return [
        *lines,
        "warp_lane = np.uint32(cuda.laneid)",
        f"warp_queue = np.uint32(cuda.threadIdx.x) // np.uint32({WARP}) * np.uint32({WAITING})",
        "below = cuda.lanemask_lt()",
        "waiting = np.int32(0)",
    ]


def _chosen(program: Program, cut: Cut, where: Layout) -> list[str]:
    """Choose among the rows of a word each, and put those that survive in the queue.

    Lanes after the last word look at that one again, in vain.
    """
    word = select(
        "first + np.uint64(warp_lane) < words",
        "first + np.uint64(warp_lane)",
        "words - np.uint64(1)",
    )
    lines = [
        f"word = {word}",
        f"begin = np.int64(first + np.uint64(warp_lane)) * {ROWS}",
        f"left = np.int32({select(f'rows - begin < {ROWS}', 'rows - begin', f'np.int64({ROWS})')})",
        *(line for source in cut.words for line in load_words(source, program, ROWS)),
    ]
    lines += _rows(program, cut)
    places = _places(cut, where)
    for k in range(ROWS):
        values = {name.text: _of_row(name, k) for name in cut.carried}
        values[ROW.text] = f"begin + {k}"
        lines += [
            f"votes = cuda.ballot_sync({ALL_LANES}, alive{k})",
            f"entry = warp_queue + np.uint32({select(f'alive{k}', LAST, NOWHERE)})",
            *(f"{place} = np.{f.type.value}({values[f.text]})" for f, place in places),
            "waiting = np.int32(waiting + cuda.popc(votes))",
        ]
    return lines


def _rows(program: Program, cut: Cut) -> list[str]:
    """Whether each row of a word survives, without a branch, so that what its rows are looked up in loads side by side.

    The lines of one row are those of another but for its number, and comments beside the first.
    """
    alive = Name(f"alive{K}", Machine.BOOL)
    # Behind the last row there may be any code, which no table need have
    tables = any(
        isinstance(part, Lookup)
        for s in cut.choosing
        for term in terms_of(s)
        for part in subterms(term)
    )
    lines = [(f"k = {K}", ""), (f"{alive.text} = left > {K}", "")]
    for source in cut.words:
        lines += [(line, "") for line in unpack(source, program, ROWS)]
        if tables and source.register in (Machine.I32, Machine.I64):
            code = f"{program.names[source.column]}_code"
            none = f"np.{source.register}(0)"
            lines.append((f"{code} = {select(alive.text, code, none)}", ""))
    lines += [_choice(statement, alive) for statement in cut.choosing]
    lines += [(f"{_of_row(name, K)} = {name.text}", "") for name in cut.carried]
    return [
        commented(line.replace(K, str(k)), "" if k else step)
        for k in range(ROWS)
        for line, step in lines
    ]


def _choice(statement: Choosing, alive: Name) -> tuple[str, str]:
    """A statement for a row, and what it stands for."""
    match statement:
        case Let(name, value, step):
            return f"{name.text} = {text(only_alive(value, alive), select)}", step
        case Guard(condition, step):
            met = _and(alive, only_alive(condition, alive))
            return f"{alive.text} = {text(met, select)}", step
        case Doubt(condition):
            met = _and(alive, condition)
            return f"doubt |= {text(met, select)}", "a result near 64 bits: no proof"


def _and(alive: Name, condition: Term) -> Term:
    return Apply("&", (alive, condition), Machine.BOOL)


def _of_row(name: Name, k: int | str) -> str:
    """The variable of a value of row k; no column has a capital letter in its name."""
    return f"{name.text}_K{k}"


def _places(cut: Cut, where: Layout) -> list[tuple[Name, str]]:
    """The element of an entry of the queue for each field."""
    found, start = [], where.queue_start
    for i, field in enumerate(cut.fields):
        width = CELL_BYTES[field.type]
        found.append((field, f"queue{i}[np.uint32({start // width}) + entry]"))
        start += where.threads // WARP * WAITING * width
    return found


def _handled(cut: Cut, where: Layout, sink: list[str]) -> list[str]:
    """Take survivors from the end of the queue, one a lane."""
    taken = select(f"waiting < np.int32({WARP})", "waiting", f"np.int32({WARP})")
    flags = {name.text for name in cut.carried if name.type is Machine.BOOL}
    lines = []
    for field, place in _places(cut, where):
        value = f"np.uint64({place})" if field.text == ROW.text else place
        lines.append(f"{field.text} = {value}{' != 0' if field.text in flags else ''}")
    return [
        "cuda.syncwarp()",
        f"taken = {taken}",
        "waiting = np.int32(waiting - taken)",
        "if warp_lane < np.uint32(taken):",
        "    entry = warp_queue + np.uint32(waiting) + warp_lane",
        *indent(lines, 1),
        *indent(row_statements(cut.handling, select, sink), 1),
        "cuda.syncwarp()",
    ]
