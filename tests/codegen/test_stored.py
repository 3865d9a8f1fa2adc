"""Nothing foreign in the folder of kernels runs: not a source, not machine code, whoever planted it and however it was damaged."""

from __future__ import annotations

import os
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from fuseline.codegen.compile import kernel_files
from fuseline.codegen.compile.kernel_files import KernelFile
from fuseline.codegen.compile.native import NativeKernel
from fuseline.codegen.stored import folder as folders, folder as secrets
from fuseline.codegen.stored.folder import CODE, MAGIC, TAG_BYTES, Folder, Secret, sealed
from tests.codegen.test_kernel_files import add

ROOT_ALONE = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
KEY, OTHER_KEY = b"k" * 32, b"o" * 32
FLIPS = 50


@pytest.fixture(autouse=True)
def state(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A user whose secret lies in a folder of its own."""
    home = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    yield home / "fuseline"
    folders.folder.cache_clear()
    kernel_files.forget()


def new_process() -> None:
    folders.folder.cache_clear()
    kernel_files.forget()


def origin(file: KernelFile) -> str:
    """Where the machine code comes from in a new process; it must add."""
    new_process()
    code, found = file.machine_code()
    assert NativeKernel(code, file.signature)(2, 3) == 5
    return found


@pytest.fixture
def file(tmp_path: Path) -> KernelFile:
    """A kernel that is on disk."""
    made = add(tmp_path / "kernels")
    assert origin(made) == "compiler"
    assert origin(made) == "disk"
    return made


def stored(file: KernelFile) -> Path:
    return file.path.with_suffix(CODE)


def test_a_planted_source_does_not_run(file: KernelFile, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    stored(file).unlink()
    file.path.write_text(f"open({str(ran)!r}, 'w')\n" + file.source)
    assert origin(file) == "compiler"
    assert not ran.exists()


def planted(content: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        path.write_bytes(content(path.read_bytes()))

    return plant


def _elsewhere(path: Path) -> None:
    path.rename(path.parent / "moved")
    path.symlink_to(path.parent / "moved")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _large(path: Path) -> None:
    path.unlink()
    with path.open("wb") as file:
        file.truncate(1 << 40)


FOREIGN = {
    "another secret": planted(lambda _: sealed(b"foreign", KEY, Secret(b"s" * 32))),
    "no proof": planted(lambda held: held[:-TAG_BYTES] + bytes(TAG_BYTES)),
    "an older version": planted(lambda held: held.replace(MAGIC, b"FUSELINE KERNEL0")),
    "a bare object": planted(lambda held: held[56:-32]),
    "a pickle": planted(lambda _: b"\x80\x04cos\nsystem\n."),
    "nothing": planted(lambda _: b""),
    "its half": planted(lambda held: held[: len(held) // 2]),
    "more than it": planted(lambda held: held + b"\0"),
    "a link": _elsewhere,
    "a pipe": _pipe,
    "a folder": _folder,
    "a huge file": _large,
    "one open to others": lambda path: path.chmod(0o666),
}


@pytest.mark.parametrize("plant", FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_machine_code_does_not_run(file: KernelFile, plant: Callable[[Path], None]) -> None:
    plant(stored(file))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a folder cannot be replaced
        assert origin(file) == "compiler"
        assert origin(file) == ("compiler" if stored(file).is_dir() else "disk")


def test_a_file_proves_its_own_key_alone(tmp_path: Path) -> None:
    """A kernel of the user under another's name is as foreign."""
    place = Folder(tmp_path / "kernels")
    place.keep("q_one", KEY, b"one")
    shutil.copy(tmp_path / "kernels" / "q_one.kernel", tmp_path / "kernels" / "q_other.kernel")
    assert place.load("q_one", KEY) == b"one"
    assert place.load("q_other", OTHER_KEY) is None


def flipped(file: KernelFile, count: int) -> None:
    whole, choice = stored(file).read_bytes(), random.Random(count)
    for _ in range(count):
        at = choice.randrange(8 * len(whole))
        damaged = bytearray(whole)
        damaged[at // 8] ^= 1 << at % 8
        stored(file).write_bytes(damaged)
        assert Folder(file.directory).load(stored(file).stem, file.key) is None, at
    stored(file).write_bytes(whole)
    assert origin(file) == "disk"


def test_flipped_bits(file: KernelFile) -> None:
    flipped(file, FLIPS)


@pytest.mark.nightly
def test_a_thousand_flipped_bits(file: KernelFile) -> None:
    flipped(file, 1000)


# The folder


@ROOT_ALONE
def test_files_of_another_user_do_not_run(file: KernelFile) -> None:
    os.chown(stored(file), 12345, -1)
    assert origin(file) == "compiler"


def _given_away(path: Path) -> None:
    os.chown(path, 12345, -1)


UNSAFE = {
    "open to all": lambda path: path.chmod(0o777),
    "open to its group": lambda path: path.chmod(0o770),
    "sticky": lambda path: path.chmod(0o1777),
    "another's": _given_away,
    "a file": lambda path: (shutil.rmtree(path), path.write_text("")),
}
OF_ALL = [
    pytest.param(unsafe, id=name, marks=[ROOT_ALONE] if name == "another's" else [])
    for name, unsafe in UNSAFE.items()
]


@pytest.mark.parametrize("unsafe", OF_ALL)
def test_a_folder_that_is_not_the_users_alone_is_not_used(
    file: KernelFile, unsafe: Callable[[Path], object]
) -> None:
    unsafe(file.directory)
    with pytest.warns(RuntimeWarning, match="in memory alone") as told:
        assert origin(file) == "compiler"
    assert len(told) == 1
    assert file.machine_code()[1] == "memory"


def test_a_folder_is_made_for_the_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert origin(add(tmp_path / "made" / "kernels")) == "compiler"
    finally:
        os.umask(before)
    for path in (tmp_path / "made", tmp_path / "made" / "kernels"):
        assert path.stat().st_mode & 0o777 == 0o700
        assert all(p.stat().st_mode & 0o077 == 0 for p in path.iterdir())


def test_a_folder_that_is_removed_is_made_again(file: KernelFile) -> None:
    place = folders.folder(file.directory)
    place.load("q_none", KEY)
    shutil.rmtree(file.directory)
    place.keep("q_one", KEY, b"one")
    assert place.load("q_one", KEY) == b"one"


@pytest.mark.parametrize("failing", ["link", "replace"])
def test_a_file_system_without_links_or_renames(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError("not supported")

    if failing == "link":
        monkeypatch.setattr(os, "link", refused)
        assert origin(add(tmp_path)) == "compiler"
        assert origin(add(tmp_path)) == "disk"
        return
    monkeypatch.setattr(Path, "replace", refused)
    with pytest.warns(RuntimeWarning, match="not supported"):
        assert origin(add(tmp_path)) == "compiler"
    assert not list(tmp_path.glob("q_*"))


# The secret


def _lengthened(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def _linked(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


SECRETS = {
    "open to its group": lambda path: path.chmod(0o640),
    "open to all": lambda path: path.chmod(0o604),
    "damaged": _lengthened,
    "a link": _linked,
    "in an open folder": lambda path: path.parent.chmod(0o777),
    "another's": _given_away,
}


@pytest.mark.parametrize(
    "unsafe",
    [
        pytest.param(unsafe, id=name, marks=[ROOT_ALONE] if name == "another's" else [])
        for name, unsafe in SECRETS.items()
    ],
)
def test_a_secret_that_others_may_know_proves_nothing(
    file: KernelFile, state: Path, unsafe: Callable[[Path], object]
) -> None:
    unsafe(state / secrets.NAME)
    with pytest.warns(RuntimeWarning, match="in memory alone"):
        assert origin(file) == "compiler"


def test_a_secret_among_the_kernels_proves_nothing(tmp_path: Path, state: Path) -> None:
    with pytest.warns(RuntimeWarning, match="lies in the folder of the kernels"):
        assert origin(add(state)) == "compiler"


def test_another_secret_makes_kernels_anew(file: KernelFile, state: Path) -> None:
    (state / secrets.NAME).unlink()
    assert origin(file) == "compiler"
    assert origin(file) == "disk"


def test_a_secret_is_the_users_alone(file: KernelFile, state: Path) -> None:
    made = state / secrets.NAME
    assert (made.stat().st_mode & 0o777, made.stat().st_size) == (0o600, secrets.SECRET_BYTES)
    assert state.stat().st_mode & 0o777 == 0o700


def test_the_first_secret_stays(state: Path, tmp_path: Path) -> None:
    """Where two processes make one at the same time."""
    first = secrets.secret_for(tmp_path / "kernels")
    secrets._make(state / secrets.NAME)
    assert secrets.secret_for(tmp_path / "kernels").key == first.key


# Limits


def test_kernels_used_longest_ago_go(tmp_path: Path) -> None:
    place = Folder(tmp_path / "kernels")
    place.limit = 10_000
    for number in range(30):
        place.show(f"q_{number}", "source" * 150)
        place.keep(f"q_{number}", KEY, bytes(900))
        assert sum(path.stat().st_size for path in place.path.iterdir()) <= place.limit
        os.utime(place.path / f"q_{number}{CODE}", (number, number))
        if number > 2:
            assert place.load("q_2", KEY) is not None  # which makes it the one used last
    kept = {path.stem for path in place.path.iterdir()}
    assert {"q_2", "q_29"} <= kept
    assert "q_0" not in kept
    assert {path.stem for path in place.path.glob("*.py")} == kept


def test_nothing_is_kept_with_a_limit_of_0(tmp_path: Path) -> None:
    place = folders.folder(tmp_path / "kernels")
    place.limit = 0
    assert add(place.path).machine_code()[1] == "compiler"
    assert not list(place.path.glob("q_*"))


def test_what_older_versions_and_killed_processes_left_goes(tmp_path: Path) -> None:
    place = Folder(tmp_path)
    left = ["q_a.cubin", "q_a.py", "q_b.o", "q_c.tmp"]
    others = ["bandwidth.json", "mine.py", "notes.tmp", "q_notes.txt"]
    for name in (*left, *others, "q_new.tmp"):
        (tmp_path / name).touch()
        if name != "q_new.tmp":
            os.utime(tmp_path / name, (1, 1))
    (tmp_path / "q_folder.py").mkdir()
    place.keep("q_one", KEY, b"one")
    assert {path.name for path in tmp_path.iterdir()} == {
        *others,
        "q_new.tmp",
        "q_folder.py",
        "q_one.kernel",
    }


def test_files_that_another_process_replaces_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between their names and their sizes; a warning would be an error here."""
    place = Folder(tmp_path)
    (tmp_path / "q_other.tmp").touch()
    (tmp_path / "q_other.kernel").touch()

    def goes(entry: os.DirEntry[str]) -> bool:
        if entry.name.startswith("q_other"):
            Path(entry.path).unlink()
        return is_ours(entry)

    is_ours = folders._is_ours
    monkeypatch.setattr(folders, "_is_ours", goes)
    place.keep("q_one", KEY, b"one")
    assert [path.name for path in tmp_path.iterdir()] == ["q_one.kernel"]
    assert place.load("q_one", KEY) == b"one"


# Calls


def test_an_array_of_another_type_is_refused(tmp_path: Path) -> None:
    source = "def first(array):\n    return array[0]\n"
    file = kernel_files.kernel_file("first", source, [("array", "[int64]")], tmp_path, None)
    kernel = NativeKernel(file.machine_code()[0], file.signature)
    assert kernel(np.array([7, 8])) == 7
    for wrong in (np.array([7], np.int32), np.arange(6)[::2]):
        with pytest.raises(TypeError, match="compiled for arrays of int64"):
            kernel(wrong)


@pytest.mark.parametrize(
    "statement", ["return np.empty(array[0], np.int64).size", "raise ValueError", "print(array[0])"]
)
def test_a_kernel_that_allocates_or_raises_is_refused(statement: str, tmp_path: Path) -> None:
    source = f"import numpy as np\n\n\ndef wrong(array):\n    {statement}\n"
    file = kernel_files.kernel_file("wrong", source, [("array", "[int64]")], tmp_path, None)
    with pytest.raises(Exception, match=r"calls|NRT|raise"):
        file.machine_code()
