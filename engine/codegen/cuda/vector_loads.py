"""How CUDA kernels load columns: whole words, of which each holds several rows' codes, or the word of a single row."""

from __future__ import annotations

from ..loop import Machine
from ..program import Program
from ..typed_values import Input

WORD_IN_TURN = 4  # rows that a thread takes one after the other: a byte each makes a word


def word_bits(source: Input, rows: int) -> int:
    return 32 if source.width * rows == 4 else 64


def validity_bits(rows: int) -> int:
    return max(rows, 8)


def load_words(source: Input, program: Program, rows: int) -> list[str]:
    """Load the codes of this thread's rows as whole words, and their validity bits."""
    name = program.names[source.column]
    count = max(source.width * rows // 8, 1)
    lines = []
    for pair in range(count // 2):
        at = "word" if count == 2 else f"word * {count // 2} + {pair}"
        words = f"{name}_word{2 * pair}, {name}_word{2 * pair + 1}"
        lines.append(f"{words} = load_pair({name}, {at})")
    if count == 1:
        lines.append(f"{name}_word0 = {name}[word]")
    if source.nullable and rows >= 8:
        lines.append(f"{name}_mask = {name}_bits[word]")
    elif source.nullable:
        lines.append(f"{name}_mask = {name}_bits[word >> 1] >> ((word & 1) * 4)")
    return lines


def unpack(source: Input, program: Program, rows: int) -> list[str]:
    """Take row k's code out of the words; k is a constant once the loop is unrolled."""
    name = program.names[source.column]
    a_word = word_bits(source, rows) // (8 * source.width)
    count = rows // a_word
    word = f"{name}_word{count - 1}"
    for w in range(count - 2, -1, -1):
        word = f"({name}_word{w} if k < {(w + 1) * a_word} else {word})"
    place = "k" if count == 1 else f"(k % {a_word})"
    shift = f" >> ({place} * {8 * source.width})" if a_word > 1 else ""
    lines = [_code(source, name, f"{word}{shift}")]
    if source.nullable:
        lines.append(f"{name}_valid = ({name}_mask >> k) & 1 != 0")
    return lines


def load_row(source: Input, program: Program, rows: int) -> list[str]:
    """Load the word that holds one row, and take its code out."""
    name = program.names[source.column]
    a_word = word_bits(source, rows) // (8 * source.width)
    word = f"{name}[row // np.uint64({a_word})] >> ((row & {a_word - 1}) * {8 * source.width})"
    lines = [_code(source, name, word if a_word > 1 else f"{name}[row]")]
    if source.nullable:
        bits = validity_bits(rows)
        byte = f"{name}_bits[row // np.uint64({bits})]"
        lines.append(f"{name}_valid = ({byte} >> (row & {bits - 1})) & 1 != 0")
    return lines


def _code(source: Input, name: str, word: str) -> str:
    """The lowest bytes of a word as an integer register, or as the float that they are."""
    if source.machine is not None:
        view = "float_of_bits" if source.machine is Machine.F32 else "double_of_bits"
        return f"{name}_code = {view}({word})"
    if source.register is Machine.I32 and source.width == 4:
        return f"{name}_code = np.int32({word})"
    taken = word if source.width == 8 else f"np.uint{8 * source.width}({word})"
    return f"{name}_code = np.{source.register.value}({taken})"
