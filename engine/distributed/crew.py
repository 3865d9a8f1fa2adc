"""The client's side of a cluster: queries go to the workers that they need, all at once, and again where a worker was lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import pyarrow as pa

from ..errors import ClusterError, Interrupted
from ..plan.partitioning import Fact
from ..plan.physical import Physical
from ..settings import Settings
from ..stopping import Stop
from ..storage.shards import Placement
from ..storage.tables.memory_table import MemoryTable, ShardedTable
from .clusters import Cluster
from .local_calls import Call, drop, wait_for
from .members import ALIVE_SECONDS, LOOK_SECONDS, LOST, TRIES, Member, Members, Team, await_all
from .orders import KnownPlan, Part, QueryOrder, SentPlan, SentTables, packed
from .own_plans import Form, placement_for
from .trials import TrialKind

if TYPE_CHECKING:
    from distributed import Client

TRIAL_SECONDS = 600.0
MOST_MERGED = 1 << 15  # rows; of a plan with more, groups go by hash from then on
STOPPED = "The query was stopped."
ENDED = "Another worker failed."


class CrewAnswer(NamedTuple):
    """A plan's rows, what each worker says of its part, what the client has yet to make of the rows, and how tables were placed."""

    rows: pa.Table | None
    parts: list[Part]
    rest: Physical | None
    placement: Placement


class _Missing(Exception):
    """A worker has forgotten the plan, or is of another team."""


class _Refuted(Exception):
    """Columns of tables are not what footers let expect."""

    def __init__(self, facts: set[Fact]) -> None:
        super().__init__()
        self.facts = facts


class Crew:
    """Runs plans on a team of workers; only queries in which workers meet take turns, one that a single worker runs keeps the others free."""

    def __init__(self, cluster: Cluster, settings: Settings, device: str) -> None:
        self._cluster = cluster
        self._members = Members(cluster, settings, device)
        self._numbers, self._plans = count(), count()
        self._known: dict[int, KnownPlan] = {}
        # Plans of whose columns all workers know, and those that all have run to the end the last time
        self._agreed, self._settled = set[int](), set[int]()
        self._tables = SentTables()
        self._holders: WeakKeyDictionary[ShardedTable, frozenset[Member]] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._refuted: set[Fact] = set()
        self._members.gather()

    @property
    def size(self) -> int:
        """How many workers there are."""
        return len(self._members.team.members)

    @property
    def addresses(self) -> Sequence[str]:
        return [member.address for member in self._members.team.members]

    @property
    def client(self) -> Client:
        return self._cluster.client

    @property
    def keys(self) -> list[str]:
        """The keys of the workers' actors."""
        return [member.key for member in self._members.team.members]

    @property
    def not_linked(self) -> str:
        """Why rows go by way of the host; nothing where they go from GPU to GPU."""
        return self._members.not_linked

    def configure(self, settings: Settings) -> None:
        if settings.exchange != self._members.settings.exchange:
            self._members.look_again()
        self._members.settings = settings

    def placement(self, settings: Settings) -> Placement:
        """What workers have of tables, the same for all, whatever memory each has."""
        return Placement.of(settings, self._members.room, frozenset(self._refuted))

    def run(
        self,
        plan: Physical,
        settings: Settings,
        timed: bool,
        stop: Stop,
        keep: ShardedTable | None = None,
    ) -> CrewAnswer:
        """Run a plan and return its rows, and what each worker says of its part; again where a worker was lost.

        Rows that all workers answer are None where they `keep` them, as their shares of that table.
        """
        for left in range(TRIES - 1, -1, -1):
            try:
                return self._run(plan, settings, timed, stop, keep)
            except _Refuted as found:
                self._refuted |= found.facts
                self._known.pop(id(plan), None)
                return self.run(plan, settings, timed, stop, keep)
            except _Missing:
                self._known.pop(id(plan), None)
            except ClusterError:
                if not left:
                    raise
        raise ClusterError("The workers change faster than a query can begin.")

    def _run(
        self,
        plan: Physical,
        settings: Settings,
        timed: bool,
        stop: Stop,
        keep: ShardedTable | None,
    ) -> CrewAnswer:
        self._forget()
        before = self._members.team
        if self._members.has_changed():
            self._gather(before, stop)
        team, known = self._plan_for(plan, settings)
        chosen, form = team.chosen(known.form), known.form
        with ExitStack() as turn:
            agrees = len(chosen) > 1 and settings.fuse != "never"  # kernels read agreed columns
            agrees = agrees and known.number not in self._agreed
            if form.meets:
                turn.enter_context(self._cluster.turn.held(stop.check))
            elif agrees:  # another time, rather than that it waits for a turn
                agrees = turn.enter_context(self._cluster.turn.held_if_free())
            meets = form.meets or agrees
            if meets and team is not self._members.team:
                raise _Missing
            settled = known.number in self._settled
            self._settled.discard(known.number)
            numbers, linked = (next(self._numbers), team.number, known.number), not self.not_linked
            order = QueryOrder(*numbers, timed, meets, linked, agrees, settled)
            if keep is not None and form.spread and form.rest is None:
                order = replace(order, keep=(keep.identity, keep))
            parts = self._parts(chosen, team, order, plan, known, stop)
            odd = [p for p in parts if p.error or p.missing or p.refuted or p.unlinked]
            self._settled.update(() if odd else (known.number,))
        self._check(odd)
        if agrees:
            self._agreed.add(known.number)
        if order.keep is not None:
            self.hold(keep, team)
            return CrewAnswer(None, parts, None, known.placement)
        rows = pa.concat_tables(part.table() for part in parts if part.rows is not None)
        if form.rest is not None and rows.num_rows > MOST_MERGED and known.placement.few_groups:
            self._noted(plan, team, settings, replace(known.placement, few_groups=False))
        return CrewAnswer(rows, parts, form.rest, known.placement)

    def _check(self, odd: list[Part]) -> None:
        """Raise what parts say other than rows."""
        if any(part.unlinked for part in odd):
            self._members.look_again()
        wrong = {part.refuted for part in odd if part.refuted is not None}
        if wrong:
            raise _Refuted(wrong)
        errors = [part for part in odd if part.error is not None]
        if errors:
            first = min(errors, key=lambda part: part.lost)
            assert first.error is not None
            raise first.error
        if any(part.missing for part in odd):
            raise _Missing

    def hold(self, table: ShardedTable | None, team: Team | None = None) -> None:
        """Note who has the rows of a table: the team of now has."""
        assert table is not None
        members = (team or self._members.team).members
        self._tables.note(table)
        self._holders[table] = frozenset(members)
        for member in members:
            member.tables.add(table.identity)

    def each(
        self, what: str, given: Sequence[tuple[object, ...]], check: Callable[[], None]
    ) -> list[Any]:
        """Return what each worker of the team answers, behind its queries; raises `ClusterError` where one is lost."""
        team = self._members.team
        calls = [
            self._members.begin(team, rank, what, *own)
            for rank, (_, own) in enumerate(zip(team.members, given, strict=True))
        ]
        self._await(calls, list(range(len(calls))), team, check)
        return [call.result() for call in calls]

    def _forget(self) -> None:
        """Have workers let go of tables that are here no more."""
        gone = self._tables.take_gone()
        for member in self._members.team.members:
            if gone & member.tables:
                member.tables -= gone
                with suppress(*LOST):
                    self._cluster.begun(member.actor.forget(gone))

    def ask_all(self, what: str, *given: object) -> list[Any]:
        """Return what each worker of the team says when it is asked beside its queries, None where it says nothing."""
        calls: list[Future[Any] | None] = []
        for member in self._members.team.members:
            try:
                calls.append(self._cluster.begun(getattr(member.actor, what)(*given)))
            except LOST:
                calls.append(None)
        return await_all(calls)

    def trial(self, kind: TrialKind, nbytes: int, linked: bool = False) -> float:
        """Return the seconds that the slowest worker took to exchange so many bytes, all that each has to give; `linked`: from GPU to GPU."""
        team, given = self._members.team, (next(self._numbers), kind, nbytes, linked)
        with self._cluster.turn.held(lambda: None):
            ranks = range(len(team.members))
            calls = [self._members.begin(team, rank, "trial", *given) for rank in ranks]
            return max(call.result(timeout=TRIAL_SECONDS) for call in calls)

    def _gather(self, before: Team, stop: Stop) -> None:
        """Have a team of those who are there now; a query that runs meanwhile ends before, or finds that its worker is gone."""
        with self._cluster.turn.held(stop.check):
            if self._members.team is before:
                self._members.gather(stop.check)

    def _plan_for(self, plan: Physical, settings: Settings) -> tuple[Team, KnownPlan]:
        """Return the team of now, and what is known of a plan that it is to run."""
        team = self._members.team
        if not team.members:
            raise ClusterError("The workers are let go: the connection is closed.")
        known = self._known.get(id(plan))
        if known is None or not known.is_for(team.number, settings):
            team.check_rows(plan, self._holders)
            known = self._noted(plan, team, settings, self.placement(settings))
        return team, known

    def _noted(
        self, plan: Physical, team: Team, settings: Settings, placement: Placement
    ) -> KnownPlan:
        """Note who is to run a plan, under a number that workers do not know yet."""
        key = id(plan)
        placement, form = placement_for(plan, settings, placement, len(team.members))
        gone = ref(plan, lambda _: self._known.pop(key, None))
        number = next(self._plans)
        known = KnownPlan(number, team.number, settings, placement, form, gone)
        self._known[key] = known
        return known

    def _parts(
        self,
        ranks: list[int],
        team: Team,
        order: QueryOrder,
        plan: Physical,
        known: KnownPlan,
        stop: Stop,
    ) -> list[Part]:
        """Call workers; where one is lost or the query is to end, the others are told to stop, and waited for."""
        members = [team.members[rank] for rank in ranks]
        calls: list[Call] = []
        form, once = known.form, cache(lambda: packed(plan))
        with self._lock:
            for member in members:
                member.busy += 1
        try:
            sent = [self._sent(member, known, once) for member in members]
            # Two at most where nothing is sent with them, each of which is packed once
            first = replace(order, answers=True, logs=True)
            others = replace(order, answers=form.spread)
            own = [first, *[others] * (len(sent) - 1)]
            orders = [
                o if new is None else replace(o, sent=new) for o, new in zip(own, sent, strict=True)
            ]
            calls = self._members.begin_query(team, ranks, orders)
            parts = self._awaited(calls, ranks, team, order, form, stop)
        except BaseException as error:
            why = STOPPED if isinstance(error, Interrupted | KeyboardInterrupt) else str(error)
            self._stop(order.query, why, members, calls)
            raise
        finally:
            with self._lock:
                for member in members:
                    member.busy -= 1
        if any(not call.done() for call in calls):
            self._stop(order.query, ENDED, members, calls)
        for member, new, part in zip(members, sent, parts, strict=False):
            if part.missing:
                member.tables.clear()
            elif new is not None and part.error is None and part.refuted is None:
                member.plans.add(known.number)
                member.tables.update(new.tables)
        return parts

    def _sent(
        self,
        member: Member,
        known: KnownPlan,
        once: Callable[[], tuple[bytes, dict[Hashable, MemoryTable]]],
    ) -> SentPlan | None:
        """A plan with what a worker does not have yet: it has what was in one that it has answered."""
        if known.number in member.plans:
            return None
        plan, tables = once()
        for table in tables.values():
            self._tables.note(table)
        new = {
            identity: table for identity, table in tables.items() if identity not in member.tables
        }
        return SentPlan(plan, new, known.settings, known.placement)

    def _awaited(
        self,
        calls: list[Call],
        ranks: list[int],
        team: Team,
        order: QueryOrder,
        form: Form,
        stop: Stop,
    ) -> list[Part]:
        """Wait for all answers, or where nobody meets for the first error; raises `ClusterError` where a worker is lost."""

        def look(done: set[Call]) -> bool:
            return not form.meets and any(call.result().error is not None for call in done)

        self._await(calls, ranks, team, stop.check, look, order)
        found = [call.result() for call in calls if call.done()]
        if len(found) == len(calls):
            return found
        return [part for part in found if part.error is not None][:1]

    def _await(
        self,
        calls: Sequence[Call],
        ranks: Sequence[int],
        team: Team,
        check: Callable[[], None],
        is_enough: Callable[[set[Call]], bool] = lambda done: False,
        order: QueryOrder | None = None,
    ) -> None:
        """Wait for calls to workers; raises `ClusterError` where one is lost."""
        looked = time.monotonic()
        pending = set(calls)
        while pending:
            # Woken once for all answers, or by a worker that is lost
            done, pending = wait_for(pending, LOOK_SECONDS)
            for call in done:
                error = call.exception()
                if isinstance(error, LOST):
                    raise self._members.lost(team, ranks[calls.index(call)]) from error
                if error is not None:
                    raise error
            if is_enough(done):
                return
            check()
            if pending and time.monotonic() - looked > ALIVE_SECONDS:
                looked = time.monotonic()
                self._members.check(team, ranks)
                if order is not None and order.meets:
                    self._members.tell_over(team, order.query, dict(zip(ranks, calls, strict=True)))

    def _stop(self, query: int, why: str, members: list[Member], calls: Sequence[Call]) -> None:
        """End a query on workers, and wait a while until those that are there have, so that the next one finds them free."""
        stops = []
        waiting = []
        for member, call in zip(members, calls, strict=False):
            if not call.done() and not self._members.is_silent(member):
                with suppress(*LOST):
                    stops.append(self._cluster.begun(member.actor.stop(query, why)))
                    waiting.append(call)
        await_all([*stops, *waiting])
        drop(calls)

    def close(self) -> None:
        """Let the actors go, and the cluster if this connection has started it."""
        with suppress(ClusterError):
            self._members.close()
        self._cluster.close()
