"""The statements of a text, carried out one after the other but for the last query, which is bound and left to run."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

from .deep import deeply_for
from .errors import FuselineError, InvalidQuery, NotByRows, Span
from .interop.ingest import CallerObjects
from .plan.logical import Logical
from .plan.statements import Explain, Insert, Query, Transaction
from .plan_cache import CachedPlan, Parameters, new_cached_plan

if TYPE_CHECKING:
    import pyarrow as pa

    from .answers import Answer
    from .client.remote_runner import RemoteRunner
    from .connection import Connection
    from .running import QueryRunner
    from .sql import TextShape
    from .stopping import Stop
    from .storage.tables.memory_table import MemoryTable


def run_text(
    connection: Connection,
    runner: QueryRunner,
    text: str,
    params: Parameters,
    rows: pa.Table | None = None,
    tables: Mapping[str, Logical] | None = None,
    analyze: bool | None = None,
) -> CachedPlan | Answer:
    """Return the last statement's rows, or for a query what is needed to run it.

    With `rows` the text is one INSERT ... VALUES that stores a row for each of them, and `params` are the values of the first;
    raises `NotByRows` for others.  `tables` are plans that the text may name, whatever the catalog has.
    `analyze` is set for what stands behind EXPLAIN: a query is looked up, or bound and kept, as the text alone is, and a statement is carried out for ANALYZE alone.
    """
    if runner.server and not tables:  # frames' rows are here
        return cast("RemoteRunner", runner).answer_text(text, params, rows)
    if rows is not None:
        runner.catalog.refresh()
        return _stored(connection, runner, text, params, rows)
    start = time.perf_counter()
    answer: CachedPlan | Answer | None = None
    runner.catalog.refresh()
    shape: TextShape | None = None
    if not runner.catalog.failed and not tables:
        answer, shape = runner.plans.find(text, params, runner.settings)
        if answer is not None and answer.insert is not None:
            if analyze is None and not answer.stale_tables():
                return _insert_again(connection, runner, answer)
            answer = None
    if type(answer) is not CachedPlan or answer.stale_tables():
        if analyze is None and (asked := _explained_text(text)) is not None:
            return _explain(connection, runner, text, asked, params, tables)
        caller = CallerObjects(connection, runner, sys._getframe(1), tables)
        with runner.stoppable() as stop, caller as objects:
            given = text, params, stop, None, objects, shape, analyze
            work = partial(_bind, connection, runner, *given)
            answer = deeply_for(text, work)
    if type(answer) is CachedPlan:
        answer.spent = time.perf_counter() - start
    return answer


def _insert(
    connection: Connection,
    runner: QueryRunner,
    prepared: CachedPlan,
    objects: CallerObjects | None = None,
) -> Answer:
    from .change_tables import changed

    if objects is not None and objects.were_named:
        prepared.draft = None
    assert prepared.insert is not None
    runner.admit(prepared.insert)
    return changed(connection, prepared.insert, prepared)


def _insert_again(connection: Connection, runner: QueryRunner, prepared: CachedPlan) -> Answer:
    """Carry out an INSERT of which another text of its shape was bound."""
    with runner.stoppable():
        try:
            return _insert(connection, runner, prepared)
        except FuselineError as error:
            runner.catalog.fail()
            prepared.place(error)
            error.with_text(prepared.text)
            raise


def _explained_text(text: str) -> tuple[str, bool] | None:
    from .sql import explained_text

    return explained_text(text)


def _explain(
    connection: Connection,
    runner: QueryRunner,
    text: str,
    asked: tuple[str, bool],
    params: Parameters,
    tables: Mapping[str, Logical] | None,
) -> CachedPlan | Answer:
    """Explain what stands behind EXPLAIN in a text by the plan that it would run by."""
    from .run_statements import explanation

    query, analyze = asked
    try:
        found = run_text(connection, runner, query, params, None, tables, analyze)
        if isinstance(found, CachedPlan):
            return explanation(connection, found.source, analyze, found)
        return found
    except FuselineError as error:
        runner.catalog.fail()
        error.with_whole_text(text, len(text) - len(query))
        raise


def _stored(
    connection: Connection, runner: QueryRunner, text: str, params: Parameters, rows: pa.Table
) -> CachedPlan | Answer:
    from .storage.tables.memory_table import MemoryTable

    table = MemoryTable("parameters", rows)
    if table.unsupported:
        raise NotByRows
    try:
        with runner.stoppable() as stop:
            work = partial(_bind, connection, runner, text, params, stop, table)
            return deeply_for(text, work)
    finally:
        runner.forget(table)


def _bind(
    connection: Connection,
    runner: QueryRunner,
    text: str,
    params: Parameters,
    stop: Stop,
    rows: MemoryTable | None = None,
    objects: CallerObjects | None = None,
    shape: TextShape | None = None,
    analyze: bool | None = None,
) -> CachedPlan | Answer:
    from .run_statements import run_statement
    from .sql import TextSlots, explained, give_named_place, plan_sql

    catalog = runner.catalog
    version = catalog.version
    answers: list[CachedPlan | Answer] = []
    is_kept = True
    try:
        slots = None if shape is None else TextSlots(shape)
        is_known = shape is not None and runner.plans.knows(shape)
        statements = plan_sql(text, catalog, params, rows, objects, slots)
        while (statement := stop.anywhere(partial(next, statements, None))) is not None:
            if answers:
                stop.restart()
            if answers and isinstance(answers[-1], CachedPlan):
                # Its rows go nowhere, its errors do
                connection.run(answers[-1].source, answers[-1])
            if not isinstance(statement, Transaction):
                catalog.check_transaction()
            if isinstance(statement, Query):
                is_kept = statement.is_kept
                prepared = partial(new_cached_plan, slots, statement, text, version, is_known)
                answers.append(stop.anywhere(prepared))
            elif isinstance(statement, Insert) and slots is not None and analyze is None:
                plan = new_cached_plan(slots, statement, text, version, is_known)
                answers.append(_insert(connection, runner, plan, objects))
            else:
                if analyze is not None:
                    statement = explained(statement, analyze, Span(0, len(text)))
                carried_out = statement.writes if isinstance(statement, Explain) else None
                runner.admit(carried_out or statement)
                answers.append(run_statement(connection, statement))
    except NotByRows:  # nothing has run: the statement is about to, once for each row
        raise
    except FuselineError as error:
        catalog.fail()
        give_named_place(error, text, len(answers))
        error.with_text(text)
        raise
    if not answers:
        raise InvalidQuery("There is no statement in the text.")
    names_objects = objects is not None and objects.were_named
    if isinstance(answers[0], CachedPlan):
        if len(answers) == 1 and is_kept and not names_objects:
            runner.plans.keep_text(text, params, answers[0], version)
        else:
            answers[0].draft = None
    return answers[-1]
