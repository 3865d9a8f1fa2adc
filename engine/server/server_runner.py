"""What runs the queries of a server's connections: one column cache for all of them, and only statements that the server allows."""

from __future__ import annotations

from dataclasses import field

from ..backends import cache_limits
from ..catalog import Catalog
from ..errors import AccessDenied, FuselineError, Unsupported
from ..plan.changes.catalog_objects import TEMP
from ..plan.changes.database_changes import OfSession, OnlyReads, Writes
from ..plan.statements import CreateTable, CreateView, SetOption, Statement, Transaction
from ..records import dataclass
from ..running import QueryRunner
from ..settings import Settings
from ..stopping import Stop, current
from ..storage.columns.cache import ColumnCache


class ChangesTables(FuselineError):
    """A statement that changes tables was met where others may change them too: it is to be run again where they may not."""

    def __init__(self) -> None:
        super().__init__("This statement changes tables.")


@dataclass
class Permissions:
    """Which statements a connection of the server runs.

    `is_own`: it belongs to one session or transaction.  `changing` is the stop of the one text that may change tables now; `takes_changes`
    lets every text, in a transaction, whose tables nobody else sees.
    """

    read_only: bool
    is_own: bool = False
    takes_changes: bool = False
    changing: list[Stop] = field(default_factory=list)


class ServerRunner(QueryRunner):
    """Runs a connection's queries, and refuses statements that its permissions do not have."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        permissions: Permissions,
        cache: ColumnCache | None = None,
    ) -> None:
        super().__init__(catalog, settings)
        self.permissions, self._first = permissions, settings
        self._shares = cache is not None
        if cache is not None:
            self.cache = cache

    def configure(self, new: Settings) -> None:
        super().configure(new)
        self.cache.set_limits(cache_limits(self.device, self._first))

    def clear(self) -> None:
        """Let go of plans and answers; the column cache is of all connections."""
        if self._shares:
            from ..storage.columns.cache import ColumnCache

            self.cache = ColumnCache(cache_limits(self.device, self.settings))
        super().clear()

    def admit(self, statement: Statement) -> None:
        permissions = self.permissions
        if isinstance(statement, OnlyReads):
            return
        if isinstance(statement, Transaction):
            raise Unsupported(
                "BEGIN, COMMIT and ROLLBACK are not taken as text: use the client's transactions, in ADBC autocommit=False."
            )
        if isinstance(statement, SetOption):
            raise AccessDenied(
                f"SET {statement.name} is not taken from clients: set it as an option of your session, in ADBC "
                f'"adbc.flight.sql.session.option.{statement.name}".'
            )
        if isinstance(statement, OfSession):
            if not permissions.is_own:
                raise Unsupported(
                    "PREPARE, variables, macros and types belong to a session, and this client has none: let it keep cookies "
                    '("adbc.flight.sql.rpc.with_cookie_middleware" in ADBC) and set an option of its session.'
                )
            if not permissions.read_only:
                self.check_changes()  # a change of tables behind it would have it run twice
            return
        if not isinstance(statement, Writes):  # also what the language gets later
            raise AccessDenied(
                f"A server takes no {type(statement).__name__} from clients: only who starts it decides that."
            )
        self.check_writable()
        made = statement.name if isinstance(statement, CreateTable | CreateView) else ""
        if getattr(made, "place", ("",))[0] == TEMP:
            raise Unsupported("Temporary tables and views are not supported on a server.")
        self.check_changes()

    def check_writable(self) -> None:
        """Raise `AccessDenied` where nothing may be changed."""
        if self.permissions.read_only:
            raise AccessDenied(
                "This server only reads: it was started without --writable, so nothing can be changed or written."
            )

    def check_changes(self) -> None:
        """Raise `ChangesTables` where others may change tables too."""
        permissions = self.permissions
        if not permissions.takes_changes and current() not in permissions.changing:
            raise ChangesTables
