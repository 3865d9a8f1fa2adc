"""The values of a JSON file one after the other, each with the line that it begins in: of an array, or of the file itself."""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from ..errors import FileError
from ..plan.json.documents import real_number, text_of
from ..records import dataclass
from ..storage.file_identity import FileIdentity
from .csv_fields import Options, text_stream

CHUNK_BYTES = 1 << 20
MAXIMUM_OBJECT_SIZE = 16_777_216  # characters of one value, as DuckDB's bytes
_BLANK = re.compile(r"[ \t\r\n]*")
Record = tuple[int, object]


class Malformed:
    """What stands for a line that is no JSON, where such lines are left empty."""


MALFORMED = Malformed()


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        again = next(n for i, n in enumerate(names) if n in names[:i])
        raise ValueError(f'an object has the key "{again}" twice')
    return found


def _check_halves(value: object, text: str, start: int, end: int) -> None:
    """Raise `ValueError` for half a character: JSON escapes some as two, and Python takes one alone."""
    if text.find("\\ud", start, end) >= 0 or text.find("\\uD", start, end) >= 0:
        try:
            text_of(value).encode()
        except UnicodeEncodeError:
            raise ValueError("a text has half a character") from None


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=real_number)
_PLAIN_DECODER = json.JSONDecoder()  # of what is kept as text, keys that stand twice too


@dataclass
class _Text:
    """The part of a file that is looked at: its characters from some line on."""

    path: str
    chunks: Iterator[str]
    most: int  # characters that one value may have
    as_text: bool = False  # values are the texts that they have in the file
    text: str = ""
    at: int = 0
    line: int = 1
    counted: int = 0  # characters of which the ends of lines are in `line`

    @property
    def decoder(self) -> json.JSONDecoder:
        return _PLAIN_DECODER if self.as_text else _DECODER

    def more(self) -> bool:
        """Read on, at least as much as is there; tells whether there was more."""
        self.lines()
        rest = [self.text[self.at :]]
        wanted, size = len(rest[0]), 0
        for chunk in self.chunks:
            rest.append(chunk)
            size += len(chunk)
            if size >= max(wanted, 1):
                break
        self.text, self.at, self.counted = "".join(rest), 0, 0
        return size > 0

    def lines(self) -> int:
        """Return the number of the line that is looked at."""
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def next_character(self) -> str:
        """Return the first that is not blank, which is looked at then; nothing at the end."""
        while True:
            found = _BLANK.match(self.text, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def value(self) -> object:
        """Read one value; raises `FileError` with its line."""
        while True:
            error: Exception | None = None
            try:
                value, end = self.decoder.raw_decode(self.text, self.at)
                size = end - self.at
                _check_halves(value, self.text, self.at, end)
                if self.as_text:
                    value = self.text[self.at : end]
                # Behind a number that ends with the text more digits may follow
                if end < len(self.text) or not self.more():
                    self.at += size
                    return value
                continue
            except (ValueError, RecursionError) as found:
                error = found
            self.check_size()
            if not self.more():
                raise self.malformed(error)

    def check_size(self) -> None:
        if len(self.text) - self.at > max(self.most, CHUNK_BYTES):
            raise FileError(
                f'The value at line {self.lines()} of the file "{self.path}" has more than {self.most} characters: '
                "give a larger maximum_object_size."
            )

    def malformed(self, error: Exception) -> FileError:
        line, what = self.lines(), _said(error)
        if isinstance(error, json.JSONDecodeError):
            line += self.text.count("\n", self.at, error.pos)
            what = error.msg
        return FileError(f'The file "{self.path}" is no JSON at line {line}: {what}.')


def line_value(text: str) -> object:
    """Return the one value of a line; raises `ValueError` or `RecursionError` where it has none."""
    value = _DECODER.decode(text)
    _check_halves(value, text, 0, len(text))
    return value


@dataclass
class TextRead:
    """How much of a file was read otherwise: whole values, and the lines that they end with."""

    bytes: int = 0
    line: int = 1


def records(
    path: str,
    identity: FileIdentity,
    options: Options,
    as_text: bool = False,
    done: TextRead | None = None,
) -> Iterator[Record]:
    """Yield lines and values of a file, or the texts of values; raises `FileError` where it is no JSON."""
    form = "array" if options.get("array") else options.get("format", "auto")
    done = done or TextRead()
    with _chunks(path, identity, options, done.bytes) as chunks:
        most = options.get("maximum_object_size", MAXIMUM_OBJECT_SIZE)
        assert isinstance(most, int)
        text = _Text(path, chunks, most, as_text, line=done.line)
        first = text.next_character()
        if done.bytes and form == "auto":
            yield from _values(text)
            return
        lenient = bool(options.get("ignore_errors"))
        if form == "array" and first not in ("[", ""):
            raise FileError(f"The file \"{path}\" is no array of JSON: leave out format = 'array'.")
        if first == "[" and form in ("auto", "array"):
            yield from _array(text, options, may_be_lists=form == "auto")
        elif form == "newline_delimited" or (lenient and form == "auto" and _ends_its_line(text)):
            yield from _lines(text, lenient)
        else:
            yield from _values(text)


def _values(text: _Text) -> Iterator[Record]:
    while text.next_character():
        line = text.lines()
        yield line, text.value()


def _array(text: _Text, options: Options, may_be_lists: bool) -> Iterator[Record]:
    """Yield the elements of an array; where another value follows it in its first characters, each is a value itself."""
    if may_be_lists and _is_followed(text):
        yield from _values(text)
        return
    text.at += 1
    if text.next_character() != "]":
        while True:
            text.next_character()
            line = text.lines()
            yield line, text.value()
            sign = text.next_character()
            if sign == "]":
                break
            if sign != ",":
                raise text.malformed(ValueError("a comma is missing between values of the array"))
            text.at += 1
    text.at += 1
    if text.next_character():
        raise text.malformed(ValueError("something follows the array"))


def _ends_its_line(text: _Text) -> bool:
    """Whether the first value is all of its line; what is no value is taken for a line, too."""
    try:
        end = text.decoder.raw_decode(text.text, text.at)[1]
    except (ValueError, RecursionError):
        return True
    rest = text.text[end:].partition("\n")[0]
    return "\n" not in text.text[text.at : end] and not rest.strip()


def _is_followed(text: _Text) -> bool:
    try:
        end = text.decoder.raw_decode(text.text, text.at)[1]
    except (ValueError, RecursionError):
        return False
    return bool(text.text[end:].strip())


def _lines(text: _Text, lenient: bool) -> Iterator[Record]:
    """Yield the value of each line that is not blank, or what stands for none."""
    while text.next_character():
        while (end := text.text.find("\n", text.at)) < 0 and text.more():
            text.check_size()
        line = text.lines()
        piece = text.text[text.at : end if end >= 0 else len(text.text)]
        try:
            value = text.decoder.decode(piece)
            _check_halves(value, piece, 0, len(piece))
            value = piece.strip() if text.as_text else value
        except (ValueError, RecursionError) as error:
            if not lenient:
                raise FileError(
                    f'The file "{text.path}" is no JSON at line {line}: {_said(error)}.'
                ) from error
            value = MALFORMED
        yield line, value
        text.at += len(piece)


@contextmanager
def _chunks(
    path: str, identity: FileIdentity, options: Options, skipped: int
) -> Iterator[Iterator[str]]:
    """Yield the text of a file behind so many bytes."""

    def read() -> Iterator[str]:
        decoder = getincrementaldecoder("utf-8" if skipped else "utf-8-sig")()
        left = skipped
        try:
            while left and (data := stream.read(min(left, CHUNK_BYTES))):
                left -= len(data)
            while data := stream.read(CHUNK_BYTES):
                yield decoder.decode(data)
            yield decoder.decode(b"", final=True)
        except UnicodeError as error:
            raise FileError(f'The file "{path}" is not UTF-8: {error}.') from error
        except (OSError, pa.ArrowException) as error:
            raise FileError(f'The file "{path}" cannot be read: {error}.') from error

    with text_stream(identity, options) as stream:
        yield (chunk for chunk in read() if chunk)


def _said(error: Exception) -> str:
    return "values lie too deep in others" if isinstance(error, RecursionError) else str(error)
