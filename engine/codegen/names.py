"""Names of variables in kernels: those of columns and tables, as far as a kernel's own words allow."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection
from functools import lru_cache

from ..plan.text.concealed_text import concealed_name

# Words that a target uses in its kernels, besides those with digits at the end or of at most two letters
RESERVED = {
    *keyword.kwlist,
    *dir(builtins),
    *("start", "end", "row", "rows", "keep", "kept", "doubt", "slot", "table", "cuda", "block"),
    *("thread", "lane", "grid", "tail", "word", "words", "stride", "first", "last", "value"),
    *("cell", "other", "held", "offset", "shared_i", "shared_f", "out_i", "out_f", "array"),
    *("absolute", "order_of_double", "insert", "key", "keys", "hash", "filled", "state"),
    *("threads", "copy", "copies", "step", "shared_n", "double_of_bits", "float_of_bits"),
    *("math", "pending", "gathered", "or_bits", "or_new_bits", "out_n"),
    *("added", "all_added", "lost", "more_rows", "packed", "packed_at"),
    *("below", "entry", "left", "least", "more", "taken", "votes", "waiting", "begin"),
    *("warp_lane", "warp_queue", "ahead", "owned", "stays", "begun", "begins", "before", "going"),
    *("groups", "selected", "append_several", "group_slot", "load_pair", "has_bit", "set_bit"),
    *("find_rank", "pass_bits", "rank_row", "rank_rows", "load_codes", "put_rank", "word_before"),
    *("bit_at", "find_direct", "find_hashed", "find_hashed_raw", "next_linked", "next_hashed"),
    *("insert_bit", "insert_unique", "insert_linked", "insert_hashed", "insert_hashed_raw"),
    *("insert_guarded", "find_guarded", "mark_sieve", "pass_sieve", "in_sieve", "near_word"),
    *(
        "choose",
        "chosen",
        "stop",
        "append",
        "counter",
        "count",
        "capacity",
        "place",
        "number",
        "numbers",
        "links",
        "heads",
    ),
}
# What is appended to names of columns and tables
ENDINGS = re.compile(
    r"_(code|valid|bits|mask|word\d*|row|number|found|members|heads|ranks|links|numbers|state|repeated|sieve|near|marked)$"
)


MOST_CHARACTERS = 48  # of a column's name: file names have names in them, and compilers limits


@lru_cache(maxsize=4096)
def identifier(name: str) -> str:
    """A variable name that shows the column's; v_ keeps it apart from the generator's own words."""
    name = concealed_name(name)[:MOST_CHARACTERS]
    cleaned = "".join(c if c.isascii() and c.isalnum() else "_" for c in name.lower()).strip("_")
    if ENDINGS.search(cleaned):
        cleaned += "_x"
    plain = len(cleaned) > 2 and cleaned[0].isalpha() and cleaned[-1].isalpha()
    return cleaned if plain and cleaned not in RESERVED else f"v_{cleaned or 'x'}"


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number where it is taken."""
    number, candidate = 2, name
    while candidate in taken:
        candidate = f"{name}_{number}"
        number += 1
    return candidate
