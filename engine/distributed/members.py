"""The workers that make up a crew: who is there, who is gone or silent, and the place that each keeps as long as it lives."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

from distributed.actor import Actor

from ..errors import ClusterError
from ..plan.node import walk_once
from ..plan.physical import Physical
from ..records import dataclass
from ..settings import ExchangeChoice, Settings
from ..storage.tables.memory_table import ShardedTable
from .clusters import Cluster
from .local_calls import Call, LocalCall, LocalLines
from .orders import QueryOrder
from .own_plans import FIRST, Form
from .query_calls import ask
from .session import WorkerSession
from .versions import description

START_SECONDS = 60.0  # for a worker to load the engine, as long as it is there
JOINED_SECONDS = 15.0  # for a worker that is there to be one of a team, whatever its thread does
LEAVE_SECONDS = 5.0  # for workers to come back from a query that was stopped
LOOK_SECONDS = 0.02  # between two looks at the stop
ALIVE_SECONDS = 0.2  # between two looks at who is there
JOIN_SECONDS = 1.0  # between two looks whether another worker has come
NO_WORKER = "The cluster has no worker: start one with `dask worker ADDRESS`."
TRIES = 3
LOST = (OSError, RuntimeError, ValueError)  # what Dask raises of an actor whose worker is gone


@dataclass(eq=False)
class Member:
    """One worker of a crew: its actor, the numbers of the plans and the tables that it has, and how many queries it runs.

    `held` is Dask's future of the actor, which lets it live.
    """

    address: str
    actor: Actor
    held: Any
    room: int = 0  # bytes of columns that it keeps
    turn: int = 0  # how many crews this process had before
    plans: set[int] = field(default_factory=set)
    tables: set[Hashable] = field(default_factory=set)
    busy: int = 0
    lines: LocalLines | None = None  # to one of this host
    _sign: Future[Any] | None = None
    _asked: float = 0.0

    @property
    def key(self) -> str:
        """Dask's name of the actor."""
        return str(self.held.key)

    @property
    def is_lost(self) -> bool:
        """Whether Dask knows that the actor is gone, maybe before its list of workers says so."""
        return self.held.status not in ("finished", "pending")

    @property
    def speaks(self) -> bool:
        """Whether it has given the sign of life that it was last asked for."""
        return self._sign is None or self._sign.done()

    def silent_for(self, ask: Callable[[], Future[Any]]) -> float:
        """The seconds for which it has not given the sign of life that it was asked for; asks for another one."""
        now = time.monotonic()
        if not self.speaks:
            return now - self._asked
        self._sign, self._asked = ask(), now
        return 0.0


class Team(NamedTuple):
    """The members of a crew at one time, in the order of their ranks; `number` tells it from those before and after."""

    number: int
    members: tuple[Member, ...]

    def chosen(self, form: Form) -> list[int]:
        """The ranks that run a plan: all, or the one that is least busy, beginning where few other clients do."""
        ranks = range(len(self.members))
        if form.meets or form.spread:
            return list(ranks)
        home = self.members[FIRST].turn

        def load(rank: int) -> tuple[int, int]:
            return self.members[rank].busy, (rank - home) % len(ranks)

        return [min(ranks, key=load)]

    def check_rows(self, plan: Physical, holders: Mapping[ShardedTable, frozenset[Member]]) -> None:
        """Raise `ClusterError` where a worker is gone that had rows of a plan's tables."""
        for node in walk_once(plan):
            table = getattr(node, "table", None)
            if isinstance(table, ShardedTable) and (gone := holders[table] - {*self.members}):
                names = ", ".join(sorted(member.address for member in gone))
                raise ClusterError(
                    f'Rows of "{table.name}" were lost with the worker {names}: create or register it again.'
                )


class Members:
    """Makes the team, and another one when workers are lost or have joined; those that stay keep their place and what they have loaded."""

    def __init__(self, cluster: Cluster, settings: Settings, device: str) -> None:
        self.cluster, self.device = cluster, device
        self.settings = settings
        self.team = Team(0, ())
        self._wanted = 1
        self._silent: dict[str, Member] = {}
        self._looked = time.monotonic()
        self._is_broken = False
        self.not_linked = "queries run on the CPU"  # why rows go by way of the host, if they do

    @property
    def grace(self) -> float:
        return self.settings.worker_grace

    @property
    def room(self) -> int:
        """The bytes of columns that the worker keeps that keeps least."""
        return min(member.room for member in self.team.members)

    def has_changed(self) -> bool:
        """Whether a worker has come since the team was made, or is gone; asks the cluster once in a while."""
        now = time.monotonic()
        if self._is_broken or any(member.speaks for member in self._silent.values()):
            return True
        if now - self._looked < JOIN_SECONDS:
            return False
        self._looked = now
        there = self.cluster.there(self.grace)
        if there is None:
            return False
        self.cluster.bring_back(len(there))
        return there - set(self._silent) != set(self._addresses())

    def gather(self, check: Callable[[], None] = lambda: None) -> None:
        """Make a team of the workers that are there, waiting a while for those that are lost; raises `ClusterError` if there is none."""
        for left in range(TRIES - 1, -1, -1):
            try:
                self._gather(check)
            except LOST as error:
                if not left:
                    raise ClusterError(f"The workers do not stay: {error}.") from error
            else:
                return

    def _gather(self, check: Callable[[], None]) -> None:
        self._hear_silent()
        there = self._awaited(check)
        if not there:
            raise ClusterError(NO_WORKER)
        # Those who have not come back are not waited for again
        self._wanted = len(there)
        known = {member.address: member for member in self.team.members}
        new = iter(self._newcomers([a for a in there if a not in known]))
        places = [known[a] if a in there else next(new, None) for a in self._addresses()]
        members = tuple(member for member in (*places, *new) if member is not None)
        number, name = self.team.number + 1, uuid4().hex
        addresses = [member.address for member in members]
        calls = [
            member.actor.join(name, number, rank, addresses) for rank, member in enumerate(members)
        ]
        for member, call in zip(members, calls, strict=True):
            joined = self.cluster.begun(call).result(timeout=JOINED_SECONDS)
            member.room, member.turn, door = joined
            member.lines = member.lines or LocalLines.to(door)
            member.plans.clear()
        _hang_up({*self.team.members} - {*members})
        if self.device == "gpu" or self.settings.exchange == "nccl":
            seconds = AGAIN_SECONDS if self.team.members else LINK_SECONDS
            self.not_linked = link_workers(members, self.settings.exchange, self.cluster, seconds)
        self.team = Team(number, members)
        self._is_broken = False

    def _awaited(self, check: Callable[[], None]) -> list[str]:
        """The addresses of the workers that are there and speak, when they are as many as there were, or the time is over."""
        begun = asked = time.monotonic()
        while True:
            check()
            there = [a for a in self.cluster.addresses(self.grace) if a not in self._silent]
            now = time.monotonic()
            if len(there) >= self._wanted or now > begun + self.grace:
                return there
            if now - asked > JOIN_SECONDS:
                asked = now
                self.cluster.bring_back(len(there))
            time.sleep(LOOK_SECONDS)

    def _newcomers(self, addresses: Sequence[str]) -> list[Member]:
        """Put an actor on each worker; raises `ClusterError` that names those that are not as the client is."""
        placed = {"actor": True, "allow_other_workers": False, "pure": False}
        made = [
            self.cluster.client.submit(WorkerSession, self.settings, workers=[a], **placed)
            for a in addresses
        ]
        begun = [self.cluster.begun(future) for future in made]
        members: list[Member] = []
        differing: list[str] = []
        own = description(self.device)
        for address, held, pending in zip(addresses, made, begun, strict=True):
            try:
                self._wait(pending, address)
                with self.cluster.client.as_current():
                    # What Dask has unpickled belongs to any client of this process, which has a loop of its own
                    actor = Actor(WorkerSession, address, held.key)
                member = Member(address, actor, held)
                call = self.cluster.begun(member.actor.described())
                found = call.result(timeout=START_SECONDS)
            except (ImportError, AttributeError) as error:
                differing.append(f"{address} cannot load Fuseline ({error})")
                continue
            members.append(member)
            differing += [
                f"{address} has {what} {found.get(what)}, the client {own[what]}"
                for what in own
                if found.get(what) != own[what]
            ]
        if differing:
            self._let_go(members)
            raise ClusterError(f"All workers must be as the client is: {'; '.join(differing)}.")
        return members

    def _wait(self, placed: Future[object], address: str) -> None:
        """Wait until an actor is on its worker; Dask waits without end for a worker that goes meanwhile."""
        end = time.monotonic() + START_SECONDS
        while not wait([placed], ALIVE_SECONDS).done:
            if time.monotonic() > end or address not in self.cluster.addresses(self.grace):
                raise OSError(f"{address} was lost while it was started")
        placed.result()

    def _hear_silent(self) -> None:
        """Take those back that have spoken again, and forget those that are gone."""
        there = set(self.cluster.addresses(self.grace))
        for address, member in list(self._silent.items()):
            if address not in there or member.speaks:
                del self._silent[address]

    def check(self, team: Team, ranks: Sequence[int]) -> None:
        """Raise `ClusterError` where one of these workers of a team is gone, or has given no sign of life for `worker_grace`.

        Those that are there may wait for its rows.
        """
        there = self.cluster.there(self.grace)
        for rank in ranks:
            member = team.members[rank]
            if there is not None and member.address not in there:
                raise self.lost(team, rank)
            if member.silent_for(partial(self.begin, team, rank, "here")) > self.grace:
                self._silent[member.address] = member
                self._wanted = max(1, self._wanted - 1)
                raise self.lost(team, rank, f"has been silent for {self.grace:g} s (worker_grace)")

    def tell_over(self, team: Team, query: int, calls: Mapping[int, Call]) -> None:
        """Tell the workers that may wait for others in a query which of them have answered: none of these comes to a meeting any more."""
        over = [rank for rank, call in calls.items() if call.done()]
        for rank in calls.keys() - over if over else ():
            self.begin(team, rank, "note_over", query, over)

    def begin(self, team: Team, rank: int, what: str, *given: object) -> Future[Any]:
        """Call a method of a worker of a team; raises `ClusterError` where Dask knows that it is lost, maybe before its list of workers says so."""
        try:
            return self.cluster.begun(getattr(team.members[rank].actor, what)(*given))
        except LOST as error:
            raise self.lost(team, rank) from error

    def begin_query(
        self, team: Team, ranks: Sequence[int], orders: Sequence[QueryOrder]
    ) -> list[Call]:
        """Have workers of a team run a query, each by its order; raises `ClusterError` where one is known to be lost."""
        client = self.cluster.client
        members = [team.members[rank] for rank in ranks]
        for rank, member in zip(ranks, members, strict=True):
            if member.is_lost:
                raise self.lost(team, rank)
        lines = [member.lines for member in members if member.lines is not None]
        if len(lines) == len(members) and all(order.is_short for order in orders):
            return [LocalCall(*given) for given in zip(lines, orders, strict=True)]
        asked = zip(members, orders, strict=True)
        return [
            *self.cluster.begun_together(
                [partial(ask, client, member.address, member.key, order) for member, order in asked]
            )
        ]

    def look_again(self) -> None:
        """Make another team before the next query, of the same workers if they are there."""
        self._is_broken = True

    def is_silent(self, member: Member) -> bool:
        return member.address in self._silent

    def lost(self, team: Team, rank: int, how: str = "was lost while a query ran") -> ClusterError:
        self._is_broken = True
        return ClusterError(f"Worker {rank} ({team.members[rank].address}) {how}.")

    def close(self) -> None:
        """Let the actors go, with what they hold."""
        if self.team.members:
            self._let_go(self.team.members)
        self.team = Team(self.team.number, ())

    def _let_go(self, members: Sequence[Member]) -> None:
        there: set[str] = set()
        with suppress(ClusterError):
            there = set(self.cluster.addresses(LEAVE_SECONDS)) - set(self._silent)
        calls = []
        for member in members:
            if member.address in there:
                with suppress(*LOST):
                    calls.append(self.cluster.begun(member.actor.close()))
        await_all(calls)
        _hang_up(members)

    def _addresses(self) -> list[str]:
        return [member.address for member in self.team.members]


def _hang_up(members: Iterable[Member]) -> None:
    for member in members:
        if member.lines is not None:
            member.lines.close()


def await_all(calls: Sequence[Call | None]) -> list[Any]:
    """Wait for calls for a while, and return their answers, None where there is none."""
    end = time.monotonic() + LEAVE_SECONDS
    found: list[Any] = [None] * len(calls)
    for rank, call in enumerate(calls):
        if call is not None:
            with suppress(*LOST):
                found[rank] = call.result(timeout=max(0.0, end - time.monotonic()))
    return found


LINK_SECONDS = 90.0  # for NCCL to start on all workers, behind what they run for others
# The same where a worker was lost: NCCL takes 0.6 s on four H200s, and 11 to end what it was in
AGAIN_SECONDS = 25.0


def link_workers(
    members: Sequence[Member], wanted: ExchangeChoice, cluster: Cluster, seconds: float
) -> str:
    """Link the GPUs of workers, each step within so many seconds; return why rows go by way of the host, if they do.

    Raises `ClusterError` where NCCL is wanted and cannot be had.
    """
    why = "" if wanted != "host" else "exchange is 'host'"
    if len(members) < 2:
        why = why or "there is one worker"
    why = why or _obstacle(members, cluster, seconds) or _linked(members, cluster, seconds)
    if why and wanted == "nccl" and len(members) > 1:
        raise ClusterError(f"exchange is 'nccl', but {why}. SET exchange = 'auto' does without.")
    return why


def _obstacle(members: Sequence[Member], cluster: Cluster, seconds: float) -> str:
    calls = [cluster.begun(member.actor.link_place()) for member in members]
    users: dict[str, str] = {}
    for member, call in zip(members, calls, strict=True):
        place, missing = call.result(timeout=seconds)
        if missing:
            return f"of {member.address}: {missing}"
        if place in users:
            return f"{users[place]} and {member.address} use the same GPU"
        users[place] = member.address
    return ""


def _linked(members: Sequence[Member], cluster: Cluster, seconds: float) -> str:
    identity = cluster.begun(members[0].actor.link_identity()).result(timeout=seconds)
    calls = [cluster.begun(member.actor.link(identity)) for member in members]
    # Not one after the other: while one waits for a worker that is lost, the call of that one has failed
    done, late = wait(calls, seconds, FIRST_EXCEPTION)
    lost = next(filter(None, [call.exception() for call in done]), None)
    why = f"NCCL has not started within {seconds:g} s" if late else ""
    if lost is None:
        why = next(filter(None, [call.result() for call in done]), why)
    if lost is not None or why:
        for member in members:
            with suppress(OSError, RuntimeError, ValueError):  # of a worker that is lost
                cluster.begun(member.actor.unlink())
    if lost is not None:
        raise lost
    return why
