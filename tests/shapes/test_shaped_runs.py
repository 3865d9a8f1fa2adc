"""What runs of a pipeline leave to those of other texts, over a backend of which each launch does what a test says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fuseline.codegen.compile.compile_pool import CompilerEnded
from fuseline.codegen.typed_values import NotFusable
from fuseline.operators.context import Feedback
from fuseline.operators.pipeline_backend import Retry
from fuseline.plan import physical as p
from fuseline.plan.expr import TRUE, new_column
from fuseline.plan.pipeline_steps import steps_of
from fuseline.plan.shapes.plan_model import ShapedPart
from fuseline.plan.types import BIGINT
from tests.operators.scripted import DONE, Attempt, Fake, raised


def pipeline(reads_others: bool = True) -> p.Pipeline:
    stored = p.Stored(0, (new_column("x", BIGINT),))
    inputs = (p.Stored(0, ()),) if reads_others else ()
    return p.Pipeline(steps_of(p.FilterRows(stored, TRUE)), inputs)


@pytest.fixture
def texts() -> tuple[p.Pipeline, ...]:
    return tuple(pipeline() for _ in range(3))


def shaped(fake: Fake, texts: tuple[p.Pipeline, ...]) -> Fake:
    shape = pipeline()
    fake.context.shaped = {id(text): ShapedPart(shape, (n,)) for n, text in enumerate(texts)}
    return fake


def test_kernels_of_one_text_serve_others(texts: tuple[p.Pipeline, ...]) -> None:
    fake = shaped(Fake(), texts)
    for text in texts:
        assert fake.run(text).made == "kernels"
    assert fake.counts["compiled"] == 1
    assert [fake.receipt(text).origin for text in texts] == ["compiler", "memory", "memory"]


def test_those_that_do_not_fit_are_made_anew(texts: tuple[p.Pipeline, ...]) -> None:
    fake = shaped(Fake(fits=False), texts)
    for text in texts:
        fake.run(text)
    assert fake.counts["compiled"] == 3


def test_others_start_with_what_was_found_out(texts: tuple[p.Pipeline, ...]) -> None:
    seen: list[int | None] = []

    def launch(attempt: Attempt) -> Any:
        seen.append(attempt.feedback.slots)
        return Retry(Feedback(slots=64)) if len(seen) == 1 else DONE

    fake = shaped(Fake([launch]), texts)
    for text in texts:
        fake.run(text)
    assert seen == [None, 64, 64, 64]
    assert fake.counts["compiled"] == 2  # the first ones knew nothing of it


def test_answers_teach_others_too(texts: tuple[p.Pipeline, ...]) -> None:
    fake = shaped(Fake([replace(DONE, feedback=Feedback(listed=5))]), texts)
    fake.run(texts[0])
    fake.run(texts[1])
    assert fake.memory(texts[1]).feedback.listed == 5


def test_those_that_did_not_compile_serve_nobody(texts: tuple[p.Pipeline, ...]) -> None:
    fake = shaped(Fake(compile=raised(CompilerEnded("no"), (None, "compiler"))), texts)
    assert [fake.run(text).made for text in texts] == ["FilterRows(input)", "kernels", "kernels"]
    assert fake.counts["compiled"] == 2


@pytest.mark.parametrize("reads_others", [True, False])
def test_a_refusal_serves_others_that_read_no_other_rows(
    monkeypatch: pytest.MonkeyPatch, reads_others: bool
) -> None:
    given: list[p.Pipeline | None] = []

    def refuse(self: Attempt, slotted: p.Pipeline | None) -> Any:
        given.append(slotted)
        raise NotFusable("no")

    monkeypatch.setattr(Attempt, "compile", refuse)
    texts = tuple(pipeline(reads_others) for _ in range(3))
    fake = shaped(Fake(), texts)
    for text in texts:
        assert fake.run(text).made == "FilterRows(input)"
        assert fake.receipt(text).reason == "no"
    # With slots and then without, since rows may be counted that are not there
    slotted = [each is not None for each in given]
    assert slotted == ([True, False] * 3 if reads_others else [True])
