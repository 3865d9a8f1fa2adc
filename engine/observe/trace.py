"""FUSELINE_DEBUG: a run describes itself on standard error, each number one level deeper.

1  time, rows and bytes of each node, and what each pipeline's kernel reached
2  the physical plan
3  the plan after each rule that changed it
4  the generated kernels
5  the loop statements that they were made of, and why each node is where it is
"""

from __future__ import annotations

import sys
from pathlib import Path

from ..plan.node import Node
from ..plan.physical import Physical
from ..plan.text.plan_text import describe, tree
from .explain import analyzed
from .profile import NodeProfile, Profile


def show_step(name: str, plan: Node) -> None:
    """Print a plan after the rule that changed it."""
    _show(f"-- {name}\n{tree(plan)}\n")


def show_run(plan: Physical, profile: Profile, debug: int) -> None:
    """Print what a run did, as deep as `debug` asks."""
    if debug >= 2:
        _show(tree(plan))
    for i, node in enumerate(profile.pipelines, 1):
        if debug >= 5:
            _show(_statements(node, i))
        if debug >= 4:
            _show(_source(node, i))
    if debug >= 5:
        _show("\n".join(["-- placement", *(_placement(node) for node in profile.nodes)]))
    _show(analyzed(profile))


def _statements(node: NodeProfile, number: int) -> str:
    from ..codegen.emit import listing

    receipt = node.receipt
    assert receipt is not None
    if receipt.program is None:
        return f"-- loop statements of pipeline {number}: none, {receipt.summary}"
    programs = [*(build.program for build in receipt.builds), receipt.program]
    return f"-- loop statements of pipeline {number}\n" + "\n".join(
        f"{listing(program)}\n" for program in programs
    )


def _source(node: NodeProfile, number: int) -> str:
    receipt = node.receipt
    assert receipt is not None
    if receipt.kernel is None:
        return f"-- kernel of pipeline {number}: none, {receipt.summary}"
    files = [*(build.kernel for build in receipt.builds), receipt.kernel]
    return "\n".join(f"-- kernel of pipeline {number}: {file}\n{_text(file)}" for file in files)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _placement(node: NodeProfile) -> str:
    reason = "" if node.reason is None else f": {node.reason}"
    return f"  {node.device}  {describe(node.node)}{reason}"


def _show(text: str) -> None:
    print(text, file=sys.stderr)
