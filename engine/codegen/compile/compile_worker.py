"""A process that compiles kernels for another one, which asks through its standard input: `compile_pool` starts it.

A message is its length in 8 bytes and the message.  A request is JSON, the arguments of `compiler.compile_host` or
`compile_device` and where the folder of kernels is to keep it; an answer is a byte, 1 and machine code or 0 and what went wrong.  The
process ends when its input does, also amid compiling: a thread reads.  An empty request says that the one that asked is ending: what is
asked for is finished, kept in that folder instead of answered, and found by the next process.
"""

from __future__ import annotations

import json
import os
import queue
import struct
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

# Operators run meanwhile: on two busy cores, of a fair share a third is left to the compiler
NICENESS = 5
LENGTH = struct.Struct("<Q")
DONE, FAILED = b"\1", b"\0"
LEFT_SECONDS = 60.0  # that a process goes on after the one that asked


def read_message(file: BinaryIO) -> bytes | None:
    """Return the next message, None at the end."""
    head = file.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    body = file.read(size)
    return body if len(body) == size else None


def message(body: bytes) -> bytes:
    return LENGTH.pack(len(body)) + body


def answered(request: bytes) -> bytes:
    """Compile what a request asks for."""
    from .compiler import compile_device, compile_host

    given = json.loads(request)
    source, entry = given["source"], given["entry"]
    signature = [(name, kind) for name, kind in given["signature"]]
    try:
        if given["architecture"] is None:
            return DONE + compile_host(source, entry, signature)
        return DONE + compile_device(source, entry, signature, tuple(given["architecture"]))
    except Exception as error:  # whatever a compiler may raise
        return FAILED + f"{type(error).__name__}: {error}".encode(errors="replace")


def kept(request: bytes, answer: bytes) -> None:
    """Keep machine code where a request says, if that folder is still there."""
    from ..stored.folder import folder

    place = json.loads(request)["place"]
    if place is not None and answer[:1] == DONE and Path(place[0]).is_dir():
        found = folder(Path(place[0]))
        found.limit = place[3]
        found.keep(place[1], bytes.fromhex(place[2]), answer[1:])


def main() -> None:
    """Answer requests until the input ends, behind what else the machine has to do."""
    os.nice(NICENESS)
    answers = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)  # what libraries print is no answer
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    left = threading.Event()

    def read() -> None:
        while request := read_message(sys.stdin.buffer):
            requests.put(request)
        if request is None:
            os._exit(0)
        left.set()
        requests.put(request)
        threading.Event().wait(LEFT_SECONDS)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    request = answer = b""
    while following := requests.get():
        request, answer = following, answered(following)
        with suppress(OSError):  # nobody listens any more
            answers.write(message(answer))
        if left.is_set():
            kept(request, answer)
    if request:
        kept(request, answer)  # which may have come too late to be read
    os._exit(0)
