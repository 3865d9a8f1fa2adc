"""The client's side of the link between GPUs: whether a team's workers can have one, and that all or none of them do."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import ClusterError
from ..settings import ExchangeChoice
from .clusters import Cluster

if TYPE_CHECKING:
    from .members import Member

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
