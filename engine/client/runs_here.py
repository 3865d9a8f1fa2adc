"""Where the texts of a connection are carried out: in this process, unless a runner says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from ..answers import Answer
    from ..plan.logical import Logical
    from ..plan_cache import CachedPlan, Parameters


class RunsHere:
    """What a runner answers to whether a server carries out its texts: none does."""

    @property
    def server(self) -> str:
        """The address of the server that carries out texts; empty where they are carried out here."""
        return ""

    def elsewhere(
        self,
        text: str,
        params: Parameters,
        rows: pa.Table | None,
        tables: Mapping[str, Logical] | None,
    ) -> CachedPlan | Answer | None:
        """Have a server carry out a text, with the arguments of `run_text`; None where it is carried out here."""
        return None
