"""What random tests of kernels share: two connections, one that fuses always and one that never does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import fuseline
from tests.codegen.random_checks import Connections


@pytest.fixture(scope="module")
def connections(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connections]:
    kernels: Path = tmp_path_factory.mktemp("kernels")
    with (
        fuseline.connect(device=backend, fuse="always", cache_dir=kernels) as fused,
        fuseline.connect(device=backend, fuse="never") as unfused,
    ):
        yield Connections(fused, unfused)
