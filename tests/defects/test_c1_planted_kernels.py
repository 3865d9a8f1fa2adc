"""C1, C2, B5: what lay in the folder of kernels ran, damaged machine code too, and some of it raised errors of Python's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, fuseline, pyarrow as pa
name = "t" * int(sys.argv[2])
with fuseline.connect(device="cpu", fuse="always", cache_dir=sys.argv[1]) as connection:
    connection.register(name, pa.table({"v": [1, 2, 3], "w": [4, 5, 6]}))
    connection.register("u", pa.table({"v": [1, 2, 2]}))
    print(connection.execute(f"select sum(w) from {name} join u using (v) where w > 3").fetchall())
"""


def answer(folder: Path, letters: int = 1, **environment: str) -> tuple[str, str]:
    """Return what a new process answers, and what it writes to standard error."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(letters)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | environment,
    )
    return ran.stdout, ran.stderr


RIGHT = "[(14,)]\n"


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("planted") / "kernels"
    assert answer(made) == (RIGHT, "")
    assert any(made.glob("q_*.kernel"))
    return made


@pytest.fixture
def folder(kernels: Path, tmp_path: Path) -> Path:
    """Kernels as a process left them; what proves their origin does not depend on where they lie."""
    return Path(shutil.copytree(kernels, tmp_path / "kernels"))


def test_a_line_above_a_source_does_not_run(folder: Path, tmp_path: Path) -> None:
    for path in folder.glob("q_*.py"):
        path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + path.read_text())
    assert answer(folder) == (RIGHT, "")
    for path in folder.glob("q_*.kernel"):
        path.unlink()
    assert answer(folder) == (RIGHT, "")
    assert not (tmp_path / "ran").exists()


def test_a_pickle_in_the_place_of_an_index_of_numbas_does_not_run(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "__pycache__").mkdir(exist_ok=True)
    pickle = f"cos\nsystem\n(S'touch {tmp_path / 'ran'}'\ntR.".encode()
    for path in folder.glob("q_*.py"):
        for kind in (".nbi", ".nbc", ".1.nbc"):
            (folder / "__pycache__" / f"{path.stem}.x-1.py311{kind}").write_bytes(pickle)
    for path in folder.glob("q_*.kernel"):
        path.write_bytes(pickle)
    assert answer(folder) == (RIGHT, "")
    assert not (tmp_path / "ran").exists()


def test_flipped_bits_are_found(folder: Path) -> None:
    for path in folder.glob("q_*.kernel"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    assert answer(folder) == (RIGHT, "")


def test_folders_in_the_place_of_machine_code(folder: Path) -> None:
    for path in folder.glob("q_*.kernel"):
        path.unlink()
        path.mkdir()
    out, warned = answer(folder)
    assert (out, warned.count("RuntimeWarning")) == (RIGHT, 1)


def test_a_table_with_a_long_name(tmp_path: Path) -> None:
    assert answer(tmp_path / "kernels", 5000) == (RIGHT, "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    out, warned = answer(tmp_path / "kernels")
    assert (out, warned.count("RuntimeWarning")) == (RIGHT, 1)


def test_no_folder_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    out, warned = answer(tmp_path / "file" / "kernels", XDG_STATE_HOME=str(tmp_path / "file"))
    assert (out, warned.count("RuntimeWarning")) == (RIGHT, 1)
