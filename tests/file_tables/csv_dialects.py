"""CSV files of dialects that nobody chose, with the options to read them: many are damaged so that DuckDB refuses them."""

from __future__ import annotations

import random

DIALECTS = 500
KINDS = ("whole", "number", "text", "day", "moment", "truth", "clock")
DAMAGE = (
    "",
    "",
    "",
    "ragged short",
    "ragged long",
    "bad value",
    "open quote",
    "text behind quote",
    "mixed line ends",
    "bad bytes",
    "wrong options",
)
WRONG = (
    "delim = 'abcde'",
    "quote = '||'",
    "comment = 'no'",
    "new_line = 'x'",
    "decimal_separator = ';'",
    "names = ['a', 'a']",
    "types = {'zz': 'INTEGER'}",
    "force_not_null = ['zz']",
    "encoding = 'utf-99'",
    "skip = -1",
    "rejects_limit = 3",
    "store_rejects = true, ignore_errors = false",
    "store_rejects = true, rejects_table = 'x', rejects_scan = 'x'",
    "no_such_option = 1",
    "columns = {}",
    "auto_detect = false",
    "header = 'perhaps'",
    "thousands = '.'",
    "delim = '\"', quote = '\"'",
    "comment = ',', delim = ','",
    "new_line = '\\r\\n', delim = ',', columns = {'a': 'INTEGER', 'b': 'INTEGER'}",
)


def value(kind: str, chance: random.Random, comma: bool) -> str:
    whole = chance.randint(-(10 ** chance.randint(1, 9)), 10 ** chance.randint(1, 9))
    match kind:
        case "whole":
            return str(whole)
        case "number":
            return f"{whole / 100:.2f}".replace(".", "," if comma else ".")
        case "text":
            return chance.choice(["Oslo", "Ünï", "two words", "x#y", "it's", "a;b", "a,b", ""])
        case "day":
            return f"{chance.randint(1900, 2100)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        case "moment":
            return f"2020-01-{chance.randint(1, 28):02} {chance.randint(0, 23):02}:00:{chance.randint(0, 59):02}"
        case "truth":
            return chance.choice(["true", "false"])
    return f"{chance.randint(0, 23):02}:{chance.randint(0, 59):02}:{chance.randint(0, 59):02}"


def quoted(text: str, quote: str, escape: str) -> str:
    return quote + text.replace(quote, escape + quote) + quote


def dialect(seed: int) -> tuple[bytes, str]:
    """Return a file, and options in SQL."""
    chance = random.Random(seed)
    delim = chance.choice([",", ",", ";", "|", "\t", "||", "é", ":"])
    quote = chance.choice(['"', '"', "'", "$"])
    escape = quote if chance.random() < 0.7 else "\\"
    end = chance.choice(["\n", "\n", "\r\n", "\r"])
    comma = delim != "," and chance.random() < 0.2
    comment = chance.choice(["", "", "#", "~"])
    kinds = [chance.choice(KINDS) for _ in range(chance.randint(2, 5))]
    rows = [[value(kind, chance, comma) for kind in kinds] for _ in range(chance.randint(2, 30))]
    damage = chance.choice(DAMAGE)
    header = chance.random() < 0.75
    always = chance.random() < 0.3

    def written(text: str) -> str:
        signs = (delim, quote, "\r", "\n", *([comment] if comment else []))
        special = any(sign in text for sign in signs) or text != text.strip()
        return quoted(text, quote, escape) if special or always else text

    lines = [delim.join(map(written, row)) for row in rows]
    if header:
        lines.insert(0, delim.join(f"name {i}" for i in range(len(kinds))))
    if comment and chance.random() < 0.7:
        for _ in range(chance.randint(1, 3)):
            lines.insert(chance.randint(0, len(lines)), f"{comment} a note")
    notes = chance.randint(1, 3) if chance.random() < 0.2 else 0
    lines = ["a note"] * notes + lines
    at = chance.randrange(notes + header, len(lines))
    match damage:
        case "ragged short":
            lines[at] = "7"
        case "ragged long":
            lines[at] += delim + chance.choice(["7", "", delim])
        case "open quote":
            lines[at] = quote + lines[at]
        case "text behind quote":
            lines[at] = f"{quote}x{quote}y" + delim + lines[at]
        case "bad value":
            lines[at] = delim.join(["?"] * len(kinds))
    text = end.join(lines) + (end if chance.random() < 0.8 else "")
    if damage == "mixed line ends":
        text += "x" + delim * (len(kinds) - 1) + {"\n": "\r\n", "\r\n": "\n", "\r": "\n"}[end]
    data = text.encode()
    if damage == "bad bytes":
        data += b"" if text.endswith(end) else end.encode()
        data += b"\xff\xfe" + (delim * (len(kinds) - 1)).encode() + end.encode()
    if damage == "wrong options":
        return data, chance.choice(WRONG)
    options = _options(chance, kinds, header, notes, (delim, quote, escape, comment), comma)
    told = any(option.startswith("quote") for option in options)
    if damage == "mixed line ends" and told and any(o.startswith("delim") for o in options):
        options.append("strict_mode = false")
    return data, ", ".join(options)


def _options(
    chance: random.Random,
    kinds: list[str],
    header: bool,
    notes: int,
    signs: tuple[str, str, str, str],
    comma: bool,
) -> list[str]:
    delim, quote, escape, comment = signs

    def said(name: str, sign: str) -> str:
        return f"{name} = '{sign.replace(chr(39), chr(39) * 2)}'"

    found = [f"header = {str(header).lower()}"] if chance.random() < 0.8 else []
    if chance.random() < 0.7 or delim not in ",;|\t":
        found.append(said("delim", delim))
    if chance.random() < 0.5 or quote == "$":
        found += [said("quote", quote), said("escape", escape)]
    rejects = chance.random() < 0.15
    if comment == "~" or (comment and (rejects or chance.random() < 0.5)):
        found.append(said("comment", comment))
    found += ["store_rejects = true"] if rejects else []
    if notes and chance.random() < 0.7:
        found.append(f"skip = {notes}")
    found += ["decimal_separator = ','"] if comma else []
    others = {
        "null_padding = true": 0.2,
        "ignore_errors = true": 0.15,
        "all_varchar = true": 0.1,
        "nullstr = ['false', 'Oslo']": 0.15,
        "allow_quoted_nulls = false": 0.1,
        "filename = true": 0.1,
        "max_line_size = 60": 0.05,
        "union_by_name = true": 0 if rejects else 0.05,
    }
    found += [option for option, often in others.items() if chance.random() < often]
    if chance.random() < 0.2:
        chosen = ["BIGINT", "VARCHAR", "DOUBLE", "DATE"]
        types = [chance.choice(chosen) for _ in range(chance.randint(1, len(kinds)))]
        found.append(f"types = {types}")
    elif chance.random() < 0.15 and "null_padding = true" not in found:
        of_kind = {"whole": "BIGINT", "number": "DOUBLE", "day": "DATE", "truth": "BOOLEAN"}
        columns = {f"c{i}": of_kind.get(kind, "VARCHAR") for i, kind in enumerate(kinds)}
        found.append(f"columns = {columns}")
    elif chance.random() < 0.1:
        found.append("names = ['first']")
    return found
