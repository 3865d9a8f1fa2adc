"""A parsing machine for the grammar's rules.

Medeiros and Ierusalimschy, "A parsing machine for PEGs" (2008): the rules become instructions, and the machine keeps its own
stack, so that a query may nest as deeply as the parser takes it.  A table of first keys picks the alternative, and a part that
what follows cannot begin like is never tried twice: 4 us a token, where sqlglot's parser takes 35.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...records import dataclass
from ...threads.fork_locks import new_lock
from .parts import END, GrammarPart, GrammarRules, Keys

_TEST, _CALL, _RETURN, _CHOICE, _COMMIT, _SWITCH, _FAIL, _STOP, _JUMP, _SKIP = range(10)
_FIRST_CALL = 10  # of a rule that may have no instructions yet


@dataclass(frozen=True, slots=True)
class ExpectedPart:
    """A part that could stand at a place; `rules` are those that begin there, the outermost first; `within` has begun before or there."""

    part: GrammarPart
    rules: tuple[str, ...]
    within: str
    needed: bool  # whether nothing could stand there without it


class GrammarMachine:
    """The rules as instructions; `codes` and `operands` run side by side.  Those of a rule are made when it is first called."""

    def __init__(self, rules: GrammarRules) -> None:
        self.keys = rules.keys
        self.rules = rules
        self.codes: list[int] = []
        self.operands: list[Any] = []
        self.wanted: dict[int, GrammarPart] = {}  # what an instruction looks for, for `expected`
        self._add(_FIRST_CALL, "statement")
        self._add(_TEST, frozenset([END]))
        self._add(_STOP)
        self.names: dict[int, str] = {}  # of rules, by the place of their first instruction
        self._starts: dict[str, int] = {}
        self._follows = rules.follows()
        self._making = new_lock()

    def _call(self, at: int) -> None:
        """Let the instruction at a place call its rule, whose instructions are made if they are not there."""
        name = self.operands[at]
        with self._making:
            if self.codes[at] == _CALL:
                return  # another thread has
            if name not in self._starts:
                start = len(self.codes)
                self._emit(self.rules.rules[name], self._follows[name])
                self._add(_RETURN)
                self._starts[name], self.names[start] = start, name
            self.operands[at] = self._starts[name]
            self.codes[at] = _CALL

    def _add(self, code: int, operand: Any = None) -> int:
        self.codes.append(code)
        self.operands.append(operand)
        return len(self.codes) - 1

    def _emit(self, part: GrammarPart, after: Keys) -> None:
        """Add the instructions of a part that the keys `after` may follow."""
        match part.kind:
            case "keys":
                self._add(_TEST, part.keys)
            case "rule":
                self._add(_FIRST_CALL, part.rule)
            case "row":
                for each, following in self.rules.with_following(part.parts, after):
                    self._emit(each, following)
            case "/":
                self._emit_choice(part.parts, after)
            case "?":
                self._emit_optional(part.parts[0], after, again=False)
            case kind:
                keys = self.rules.first(part)[0]
                if kind == "+":
                    self._emit(part.parts[0], after | keys)
                self._emit_optional(part.parts[0], after, again=True)

    def _emit_optional(self, part: GrammarPart, after: Keys, again: bool) -> None:
        keys = self.rules.first(part)[0]
        if part.kind == "keys" and not again and keys.isdisjoint(after):
            self.wanted[self._add(_SKIP, keys)] = part
            return
        switch = self._add(_SWITCH)
        self.wanted[switch] = part
        # Where what follows cannot begin so, nothing is lost by going on alone
        choice = None if keys.isdisjoint(after) else self._add(_CHOICE)
        self._emit(part, after | keys if again else after)
        end = len(self.codes) + (again or choice is not None)
        if again or choice is not None:
            leave = _JUMP if choice is None else _COMMIT
            self._add(leave, switch if again else end)
        if choice is not None:
            self.operands[choice] = end
        self.operands[switch] = (dict.fromkeys(keys, switch + 1), end)

    def _emit_choice(self, options: Sequence[GrammarPart], after: Keys) -> None:
        """Try only those alternatives that may begin with the next key."""
        firsts = [self.rules.first(option) for option in options]
        assert not any(empty for _, empty in firsts), f"an alternative may not be empty: {options}"
        switch = self._add(_SWITCH)
        self.wanted[switch] = GrammarPart("/", tuple(options))
        fail = self._add(_FAIL)
        targets: dict[str, int] = {}
        starts: dict[tuple[int, ...], int] = {}
        ends: list[int] = []
        begun: dict[str, tuple[int, ...]] = {}
        for i, (keys, _) in enumerate(firsts):
            for key in keys:
                begun[key] = (*begun.get(key, ()), i)
        for key in sorted(begun):
            tried = begun[key]
            if tried not in starts:
                starts[tried] = len(self.codes)
                for i in tried[:-1]:
                    choice = self._add(_CHOICE)
                    self._emit(options[i], after)
                    ends.append(self._add(_COMMIT))
                    self.operands[choice] = len(self.codes)
                self._emit(options[tried[-1]], after)
                ends.append(self._add(_JUMP))
            targets[key] = starts[tried]
        for i in ends:
            self.operands[i] = len(self.codes)
        self.operands[switch] = (targets, fail)

    def run(self, keys: Sequence[str]) -> int | None:
        """Return None where the rules take the keys, else the number of the key that none of them can go on with."""
        codes, operands = self.codes, self.operands
        stack: list[Any] = []  # where to return to, and where to go on, as pairs, after a failure
        pc = i = furthest = 0
        while True:
            code, operand = codes[pc], operands[pc]
            pc += 1
            if code == _TEST:
                if keys[i] in operand:
                    i += 1
                    continue
            elif code == _SWITCH:
                pc = operand[0].get(keys[i], operand[1])
                continue
            elif code == _CALL:
                stack.append(pc)
                pc = operand
                continue
            elif code == _RETURN:
                pc = stack.pop()
                continue
            elif code == _CHOICE:
                stack.append((operand, i))
                continue
            elif code == _COMMIT:
                stack.pop()
                pc = operand
                continue
            elif code == _SKIP:
                i += keys[i] in operand
                continue
            elif code == _JUMP:
                pc = operand
                continue
            elif code == _FIRST_CALL:
                pc -= 1
                self._call(pc)
                continue
            elif code == _STOP:
                return None
            furthest = max(furthest, i)
            while stack and type(stack[-1]) is int:
                stack.pop()
            if not stack:
                return furthest
            pc, i = stack.pop()

    def expected(self, keys: Sequence[str], place: int) -> list[ExpectedPart]:
        """Return what the rules look for at `place`, the furthest that `run` got to; it is only asked for an error."""
        codes, operands = self.codes, self.operands
        stack: list[
            Any
        ] = []  # as in `run`; a call with its rule's name and the place where it begins
        found: list[ExpectedPart] = []
        pc = i = 0
        while True:
            code, operand = codes[pc], operands[pc]
            pc += 1
            if i == place and code in (_TEST, _SWITCH, _SKIP):
                table = operand[0] if code == _SWITCH else operand
                if keys[i] not in table:
                    part = self.wanted.get(pc - 1) or GrammarPart("keys", keys=operand)
                    calls = [entry for entry in stack if len(entry) == 3]
                    rules = tuple(rule for _, rule, start in calls if start == i)
                    needed = code == _TEST or (code == _SWITCH and codes[operand[1]] == _FAIL)
                    found.append(ExpectedPart(part, rules, calls[-1][1] if calls else "", needed))
            if code == _TEST and keys[i] in operand:
                i += 1
            elif code == _SWITCH:
                pc = operand[0].get(keys[i], operand[1])
            elif code == _CALL:
                stack.append((pc, self.names[operand], i))
                pc = operand
            elif code == _RETURN:
                pc = stack.pop()[0]
            elif code == _CHOICE:
                stack.append((operand, i))
            elif code == _COMMIT:
                stack.pop()
                pc = operand
            elif code == _SKIP:
                i += keys[i] in operand
            elif code == _JUMP:
                pc = operand
            else:
                while stack and len(stack[-1]) == 3:
                    stack.pop()
                if not stack:
                    return found
                pc, i = stack.pop()
