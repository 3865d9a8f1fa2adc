import pytest

from fuseline.errors import FileError, Unsupported
from fuseline.storage.tables.access import EVERYTHING
from fuseline.storage.tables.files import are_current, fill_a_folder, find_files, named_by


@pytest.fixture
def folder(tmp_path):
    for name in ("b.parquet", "a.parquet", "sub/c.parquet", "sub/deep/d.parquet", "note.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    return tmp_path


def expand(patterns):
    return tuple(found.path for found in find_files(patterns))


def identify(path):
    return find_files([path])[0].identity


def names(folder, paths):
    return [p.removeprefix(f"{folder}/") for p in paths]


def test_a_path_means_itself(folder):
    assert expand([f"{folder}/note.txt"]) == (f"{folder}/note.txt",)


def test_a_list_keeps_its_order_and_its_duplicates(folder):
    found = expand([f"{folder}/b.parquet", f"{folder}/a.parquet", f"{folder}/b.parquet"])
    assert names(folder, found) == ["b.parquet", "a.parquet", "b.parquet"]


def test_a_glob_is_sorted(folder):
    assert names(folder, expand([f"{folder}/*.parquet"])) == ["a.parquet", "b.parquet"]


def test_a_directory_means_the_parquet_files_below_it(folder):
    expected = ["a.parquet", "b.parquet", "sub/c.parquet", "sub/deep/d.parquet"]
    assert names(folder, expand([str(folder)])) == expected
    assert names(folder, expand([f"{folder}/**/*.parquet"])) == expected


def test_a_file_whose_name_looks_like_a_glob_is_that_file(folder):
    (folder / "x[1].parquet").write_text("x")
    assert names(folder, expand([f"{folder}/x[1].parquet"])) == ["x[1].parquet"]


def test_the_file_scheme_is_a_local_path(folder):
    assert names(folder, expand([f"file://{folder}/a.parquet"])) == ["a.parquet"]


@pytest.mark.parametrize(
    "pattern", ["none.parquet", "*.nothing", "gone/none.parquet", "gone/*.parquet"]
)
def test_what_is_not_there_is_named(folder, pattern):
    with pytest.raises(FileError, match=pattern.replace("*", r"\*")):
        expand([f"{folder}/{pattern}"])


def test_a_missing_folder_is_named(folder):
    with pytest.raises(FileError, match=r'no folder ".*/gone"'):
        expand([f"{folder}/gone/deeper/none.parquet"])


def test_a_directory_without_files_is_named(folder):
    (folder / "empty").mkdir()
    with pytest.raises(FileError, match=r"no \*\.parquet file below"):
        expand([f"{folder}/empty"])


def test_an_empty_list_is_an_error():
    with pytest.raises(FileError, match="at least one file"):
        expand([])


@pytest.mark.parametrize("path", ["ftp://host/x.parquet", "hdfs://host/x.parquet"])
def test_schemes_that_nobody_reads_are_refused(path):
    with pytest.raises(Unsupported, match="are not read: there are az://"):
        expand([path])


def test_a_file_that_was_written_again_has_another_identity(folder):
    path = folder / "a.parquet"
    before = identify(str(path))
    assert identify(str(path)) == before
    path.write_text("xyz")
    assert identify(str(path)) != before


@pytest.mark.parametrize("kind", ["path", "scheme", "relative", "link", "glob", "folder", "pair"])
def test_what_has_changed_is_seen(folder, kind, monkeypatch):
    monkeypatch.chdir(folder)
    path = folder / "a.parquet"
    (folder / "link.parquet").symlink_to(path)
    patterns = {
        "path": [str(path)],
        "scheme": [f"file://{path}"],
        "relative": ["a.parquet"],
        "link": [str(folder / "link.parquet")],
        "glob": [f"{folder}/*.parquet"],
        "folder": [str(folder)],
        "pair": [str(path), str(folder / "b.parquet")],
    }[kind]
    before = tuple(found.identity for found in find_files(patterns))
    assert are_current(patterns, before)
    assert not are_current(patterns, before[:-1])
    path.write_text("y")  # as many bytes as before
    assert not are_current(patterns, before)
    before = tuple(found.identity for found in find_files(patterns))
    path.unlink()
    assert not are_current(patterns, before)
    path.mkdir()
    assert not are_current(patterns, before)


@pytest.mark.parametrize("place", ["new.parquet", "sub/new.parquet", "other/new.parquet"])
def test_what_comes_into_a_folder_is_seen(folder, place):
    (folder / "other").mkdir()
    before = tuple(found.identity for found in find_files([str(folder)]))
    (folder / "other" / "notes.txt").write_text("no Parquet")
    assert are_current([str(folder)], before)
    (folder / place).write_text("x")
    assert not are_current([str(folder)], before)


@pytest.mark.parametrize("pattern", ["*.parquet", "[a-m]*.parquet", "*", "?.parquet"])
@pytest.mark.parametrize("comes", ["new.parquet", "c.parquet", ".c.parquet", "c.txt", "n.parquet/"])
def test_what_comes_into_the_folder_of_a_glob_is_seen(folder, monkeypatch, pattern, comes):
    monkeypatch.chdir(folder)
    for patterns in ([f"{folder}/{pattern}"], [pattern], [f"../{folder.name}/{pattern}"]):
        before = tuple(found.identity for found in find_files(patterns))
        assert fill_a_folder(patterns, before, EVERYTHING) == (pattern != "*")
        assert are_current(patterns, before)
        is_folder, new = comes.endswith("/"), folder / comes
        new.mkdir() if is_folder else new.touch()
        assert are_current(patterns, before) == (
            before == tuple(found.identity for found in find_files(patterns))
        )
        new.rmdir() if is_folder else new.unlink()
        assert are_current(patterns, before)


def test_a_relative_glob_means_other_files_elsewhere(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "sub" / "a.parquet").write_text("x")
    before = tuple(found.identity for found in find_files(["*.parquet"]))
    monkeypatch.chdir(folder / "sub")
    assert not are_current(["*.parquet"], before)


def test_a_home_may_be_another_one_later(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    before = tuple(found.identity for found in find_files(["~/*.parquet"]))
    assert are_current(["~/*.parquet"], before)
    monkeypatch.setenv("HOME", str(folder / "sub"))
    assert not are_current(["~/*.parquet"], before)


def test_a_relative_path_means_another_file_elsewhere(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "sub" / "a.parquet").write_text("x")
    before = (identify("a.parquet"),)
    monkeypatch.chdir(folder / "sub")
    assert not are_current(["a.parquet"], before)


def test_a_relative_path_is_looked_at_as_it_was_given(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (file,) = files = [identify("a.parquet")]
    assert named_by(["a.parquet"], files) == [file._replace(path="a.parquet")]
    monkeypatch.chdir(folder / "sub")
    assert named_by(["a.parquet"], files) is None
