"""Renders a query at any stage: what was asked, what each rule made of it, what runs where, how its Python functions run, and what that took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from statistics import median as middle
from typing import TYPE_CHECKING, Literal as OneOf, get_args

from ..errors import UnknownName, nearest, shown
from ..operators.column_tiers import NOT_ON_DEVICE, LiftedColumn
from ..operators.exchange.agree_columns import AGREEMENT, CODES
from ..operators.exchange.exchange_rounds import FEW_ROWS, HEADERS
from ..plan.logical import nested_expressions
from ..plan.node import Node, walk, walk_once
from ..plan.physical import ParquetScan, Physical, Pipeline
from ..plan.text.plan_text import describe, tree
from ..plan.udf.python_function import AggregatePart, PythonCall, PythonFold
from .profile import PLAN_ORIGINS, WorkerReceipt
from .roofline import bound

if TYPE_CHECKING:
    from ..connection import Connection
    from ..operators.context import PipelineReceipt
    from ..plan.logical import Logical
    from .profile import NodeProfile, Profile

LINE_WIDTH = 160
NUMBERS_WIDTH = 44  # of the columns before a node's text

Stage = OneOf["logical", "rules", "optimized", "physical", "analyze", "all"]


def explain(
    connection: Connection, plan: Logical, stage: Stage = "physical", key: object = None
) -> str:
    """Return the text of one stage of a plan; `key` is what the connection knows of it.

    logical    as the query was bound
    rules      the tree after each rule that changed it
    optimized  after the last rule
    physical   algorithms, build sides, devices, and the reason where the device is not the GPU
    all        these, one below the other

    `analyze`, which runs the query, is `analyzed`.  Raises `UnknownName` for another word.
    """
    if not isinstance(stage, str) or stage not in get_args(Stage):
        raise UnknownName(
            f"There is no stage {shown(stage)}: expected one of {', '.join(get_args(Stage))}."
            + nearest(stage, get_args(Stage))
        )
    if stage == "logical":
        return tree(plan)
    if stage == "physical":
        physical, origin = connection.planned(plan, key)
        whose = f"plan: {PLAN_ORIGINS[origin]}"
        return "\n".join([tree(physical), *function_lines(physical), whose])
    steps: list[tuple[str, Node]] = []
    physical, _ = connection.planned(plan, key, lambda name, node: steps.append((name, node)))
    logical_steps = [(name, node) for name, node in steps if name != "place"]
    match stage:
        case "optimized":
            return tree(optimized(plan, logical_steps))
        case "rules":
            return "\n\n".join(f"-- {name}\n{tree(node)}" for name, node in steps)
    parts = [("logical", plan), *logical_steps, ("physical", physical)]
    return "\n\n".join(f"-- {name}\n{tree(node)}" for name, node in parts)


def optimized(plan: Logical, steps: list[tuple[str, Node]]) -> Node:
    """Return the last logical tree among the steps, which is `plan` when no rule changed it."""
    from ..plan.logical import Logical

    return next((node for _, node in reversed(steps) if isinstance(node, Logical)), plan)


def analyzed(profile: Profile) -> str:
    """Return the profile as an indented table, one line a node, the root first, and what each pipeline's kernel reached."""
    lines = [
        f"{'ms':>9}  {'rows':>12}  {'MB':>9}  device  node",
    ]
    pipelines = [node for node in profile.nodes if node.receipt is not None]
    for node in profile.nodes:
        where = node.device if node.reason is None else f"{node.device}*"
        number = f" {pipelines.index(node) + 1}" if node.receipt is not None else ""
        lines.append(
            f"{node.seconds * 1e3:9.2f}  {node.rows:12,d}  {node.bytes / 1e6:9.1f}  "
            f"{where:6s}  {'  ' * node.depth}{node.text}{number}"
        )
        if isinstance(node.node, Pipeline):
            margin = " " * NUMBERS_WIDTH
            lines += [f"{margin}{'  ' * (node.depth + 1)}{text}" for text in _operators(node.node)]
    for i, node in enumerate(pipelines, 1):
        lines += [
            f"Pipeline {i}: {text}" if text[0] != " " else text for text in _kernel(node, profile)
        ]
    lines.extend(dict.fromkeys(text for n in profile.nodes for text in function_lines(n.node)))
    lines.extend(f"{n.name}: {n.host_note}" for n in profile.nodes if n.host_values)
    lines.extend(f"{n.name}: {n.remark}" for n in profile.nodes if n.remark is not None)
    apart = {n.node.not_fused: n.name for n in profile.nodes if n.node.not_fused is not None}
    lines.extend(f"{name} is in no pipeline: {reason}" for reason, name in apart.items())
    reasons = {n.reason: n.name for n in profile.nodes if n.reason is not None}
    lines.extend(f"* {name}: {reason}" for reason, name in reasons.items())
    lines.extend(
        f"{name}: its files were written seconds ago, so this run read them anew and keeps nothing of them"
        for name in _fresh_tables(profile)
    )
    lines.extend(tier_lines(profile.lifted))
    lines.extend(stage_lines(profile.workers, profile.run_seconds))
    lines.append(f"plan: {PLAN_ORIGINS[profile.plan_origin]}")
    lines.append(
        f"planning {profile.plan_seconds * 1e3:.2f} ms, execution {profile.run_seconds * 1e3:.2f} ms"
    )
    return "\n".join(_shortened(line) for line in lines)


def _fresh_tables(profile: Profile) -> dict[str, None]:
    """The names of tables whose files are so young that a write may still go on, which makes each query as slow as the first."""
    nodes = [
        part
        for found in profile.nodes
        for part in (
            [step for _, step, _ in found.node.steps.listed()]
            if isinstance(found.node, Pipeline)
            else [found.node]
        )
    ]
    scans = [node for node in nodes if isinstance(node, ParquetScan)]
    return dict.fromkeys(n.table.name for n in scans if not getattr(n.table, "settled", True))


def _operators(pipeline: Pipeline) -> list[str]:
    """The steps of a pipeline, which have no time of their own."""
    return [
        "  " * depth + describe(node) + ("  (as above)" if again else "")
        for depth, node, again in pipeline.steps.listed()
    ]


def _kernel(node: NodeProfile, profile: Profile) -> list[str]:
    """What a pipeline's kernel read, how fast, and what it waited for."""
    receipt = node.receipt
    assert receipt is not None
    if not receipt.fused or receipt.kernel is None:
        return [receipt.summary]
    roof = profile.bandwidth.get(node.device)
    share = ""
    if roof:
        percent = 100 * receipt.bandwidth / roof
        share = f", {percent:.0f} % of the {node.device}'s {_rate(roof)}, bound by {bound(receipt, roof, node.device)}"
    return [
        f"{receipt.rows:,} rows, {receipt.bytes / 1e6:,.1f} MB encoded in {_milliseconds(receipt.seconds)}: "
        f"{_rate(receipt.bandwidth)}{share}",
        f"  {_preparation(receipt)}",
        f"  kernel {receipt.kernel}",
        *(
            f"  index of {b.rows:,} rows, {b.form}, {b.bytes / 1e6:,.1f} MB: kernel {b.kernel.name}"
            for b in receipt.builds
        ),
    ]


def _preparation(receipt: PipelineReceipt) -> str:
    """What came before the kernel ran."""
    if receipt.warm:
        return "warm: columns and kernel were in memory"
    parts = [receipt.division] if receipt.chunks else []
    if receipt.load_seconds:
        parts.append(f"columns loaded in {_milliseconds(receipt.load_seconds)}")
    origin = {"memory": "in memory", "disk": "read from disk", "compiler": "compiled"}[
        receipt.origin
    ]
    parts.append(f"kernel {origin} in {_milliseconds(receipt.compile_seconds)}")
    return f"cold: {', '.join(parts)}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f} ms"


def _rate(bandwidth: float) -> str:
    return f"{bandwidth / 1e9:,.1f} GB/s" if bandwidth < 1e12 else f"{bandwidth / 1e12:.2f} TB/s"


def _shortened(line: str) -> str:
    """A line that fits a wide terminal; paths stay whole."""
    fits = len(line) <= LINE_WIDTH or line.startswith("  kernel ")
    return line if fits else f"{line[: LINE_WIDTH - 3]}..."


def function_lines(plan: Node) -> list[str]:
    """Return what a physical plan does with its Python functions, each once."""
    found: dict[str, None] = {}
    for node in walk_once(plan):
        if isinstance(node, Pipeline):
            for part in walk(node.body):
                found |= dict.fromkeys(_line(call, "") for call in _calls(part))
        elif isinstance(node, Physical):
            found |= dict.fromkeys(_line(call, node.device) for call in _calls(node))
    return list(found)


def _line(call: PythonCall | PythonFold, device: str) -> str:
    """Say how a function is run, by an operator of a device or, without one, by a kernel."""
    if isinstance(call, PythonFold):
        return (
            f"Python aggregate {call.function.name}: compiled, a loop over the values of each group on the CPU: "
            "they are gathered first, which no kernel does"
        )
    what = call.function.role if isinstance(call.function, AggregatePart) else "Python function"
    name = f"{what} {call.function.name}"
    if call.image is None:
        how = "over Arrow arrays" if call.function.way == "vectorized" else "row by row"
        why = "" if call.function.way == "vectorized" else f": it {call.why}"
        if not device:
            how = f"{how}, once for each different text, which the kernel looks up"
        return f"{name}: Python runs it {how}{why}"
    if not device:
        return f"{name}: compiled, inside the kernel"
    return f"{name}: compiled, a loop over arrays on the {device.upper()}: its operator is in no pipeline"


def _calls(node: Node) -> Iterator[PythonCall | PythonFold]:
    for field in fields(node):  # type: ignore[arg-type]
        for expr in nested_expressions(getattr(node, field.name)):
            yield from (part for part in walk(expr) if isinstance(part, PythonCall | PythonFold))


WHENCE = {
    "host": "from memory of the host",
    "store": "from the column store",
    "Parquet": "from Parquet files",
}


def tier_lines(lifted: Sequence[LiftedColumn] | None) -> list[str]:
    """Return a line for each table and tier that columns were lifted from, and one for each column that was to be in the store; none without tiers in between."""
    if lifted is None:
        return []
    if not lifted:
        return ["columns: all in memory"]
    lines = []
    for table, tier in dict.fromkeys((each.table, each.tier) for each in lifted):
        own = {each.column: each for each in lifted if (each.table, each.tier) == (table, tier)}
        sizes = [e.bytes for e in lifted if (e.table, e.tier) == (table, tier)]
        size = f"{sum(sizes) / 1e6:,.1f} MB of {table}"
        size += f" in {len(sizes):,} parts" if len(sizes) > len(own) else ""
        lines.append(f"columns {WHENCE[tier]}, {size}: {', '.join(own)}")
    reasons = {each.reason: each for each in lifted if each.reason}
    for reason, each in reasons.items():
        why = "was read from its files" if reason == NOT_ON_DEVICE else "is not in the column store"
        lines.append(f"{each.column} of {each.table} {why}: {reason}")
    return lines


def stage_lines(workers: Sequence[WorkerReceipt], run_seconds: float) -> list[str]:
    """Return a line for each stage, and one for what the workers did not take; a worker that meets more often has its last stages untold."""
    if not workers:
        return []
    lines = []
    works = [worker.stages() for worker in workers]
    count = min(len(work) for work in works)
    for stage in range(count):
        line = f"Stage {stage + 1}: {_spread(workers, [work[stage] for work in works])}"
        if stage < count - 1:
            met = [worker.meetings[stage] for worker in workers]
            out, into = (sum(found) for found in ((m.sent for m in met), (m.received for m in met)))
            # Who comes last waits for nobody
            seconds = min(m.seconds for m in met)
            most = max(max(m.sent, m.received) for m in met)
            line += (
                f"; met for {seconds * 1e3:.2f} to {max(m.seconds for m in met) * 1e3:.2f} ms in exchange {_named(met[0].number)}, "
                f"{out / 1e6:,.2f} MB out, {into / 1e6:,.2f} MB in, {most / max(seconds, 1e-9) / 1e9:.2f} GB/s a worker"
            )
        lines.append(line)
    slowest = max(worker.seconds for worker in workers)
    lines.append(
        f"Workers: {_spread(workers, [worker.seconds for worker in workers])}, of them in meetings "
        f"{max(worker.met_seconds for worker in workers) * 1e3:.2f} ms; control and answers {(run_seconds - slowest) * 1e3:.2f} ms"
    )
    return lines


def _named(number: int) -> str:
    """An exchange by its number; that of its samples has the complement, those of its headers a multiple besides."""
    if number == AGREEMENT:
        return "of what columns are"
    if number >= HEADERS:
        return f"{number % HEADERS}'s header"
    if number <= CODES:
        return f"{CODES - number}'s dictionaries"
    if number <= FEW_ROWS:
        return f"{FEW_ROWS - number}'s few rows"
    return str(number) if number >= 0 else f"{~number}'s samples"


def _spread(workers: Sequence[WorkerReceipt], seconds: Sequence[float]) -> str:
    """The slowest, the median and the fastest."""
    worst = max(range(len(seconds)), key=seconds.__getitem__)
    if len(seconds) == 1:
        return f"worker {workers[worst].worker} {seconds[0] * 1e3:.2f} ms"
    return (
        f"slowest worker {workers[worst].worker} {seconds[worst] * 1e3:.2f} ms, median {middle(seconds) * 1e3:.2f}, "
        f"fastest {min(seconds) * 1e3:.2f}"
    )
