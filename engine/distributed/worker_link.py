"""A worker's end of the link between GPUs: what it can be linked by, the link, and what becomes of the process if it costs the device."""

from __future__ import annotations

import os
import platform
import threading
import time
from typing import TYPE_CHECKING

from ..errors import ClusterError
from ..plan.physical import Device

if TYPE_CHECKING:
    from ..operators.gpu.exchange.nccl_link import NcclLink

ANSWER_SECONDS = 1.0  # for the answer of a process that ends


class WorkerLink:
    """The link of one worker's session, made for a team and let go with it."""

    def __init__(self) -> None:
        self.made: NcclLink | None = None

    @property
    def is_broken(self) -> bool:
        return self.made is None or not self.made.alive

    @staticmethod
    def places(device: Device) -> tuple[str, str]:
        """Return where this worker's GPU is, and why it cannot be linked to others, if it cannot."""
        if device != "gpu":
            return "", "its queries run on the CPU"
        from ..operators.gpu.exchange import nccl_link

        return f"{platform.node()} {nccl_link.device_place()}", nccl_link.what_is_missing()

    @staticmethod
    def identity() -> bytes:
        from ..operators.gpu.exchange.nccl_link import new_identity

        return new_identity()

    def make(self, workers: int, rank: int, identity: bytes) -> str:
        """Form the link with the others, at the same time as they do; return why not."""
        from ..operators.gpu.exchange.nccl_link import NcclLink

        self.drop()
        try:
            self.made = link = NcclLink()  # before it is formed, so that `drop` ends the wait
            link.form(workers, rank, identity)
        except (ClusterError, ImportError, RuntimeError) as error:
            self.end_if_lost()
            return str(error)
        return ""

    def drop(self) -> None:
        """Let the link go, without waiting for it on the event loop."""
        made, self.made = self.made, None
        if made is not None:
            threading.Thread(target=made.close, daemon=True).start()

    def end_if_lost(self) -> None:
        """End the process if its CUDA context is gone, after which nothing runs on the GPU: Dask's nanny starts another one."""
        if self.made is not None and self.made.context_lost:
            threading.Thread(target=_end, daemon=True).start()


def _end() -> None:
    time.sleep(ANSWER_SECONDS)
    os._exit(1)
