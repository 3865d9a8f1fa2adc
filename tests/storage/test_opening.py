"""A house rule: files are opened behind one door, and elsewhere only those that no query names."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

# What opens a file, lists a folder or looks for paths, by the last part of its name
OPENING = {
    "open", "fdopen", "OSFile", "memory_map", "input_stream", "open_input_file", "open_input_stream", "ParquetFile",
    "ParquetDataset", "read_table", "read_metadata", "read_schema", "read_text", "read_bytes", "scandir", "listdir", "iterdir",
    "glob", "rglob", "iglob", "dataset", "SourceInfo", "fromfile", "memmap", "loadtxt", "read_csv",
}  # fmt: skip
OURS = {
    "ParquetTable.open", "CsvSource.open", "SniffedSource.open", "JsonSource.open", "JsonObjectsSource.open", "ArrowSource.open", "WholeFileSource.open", "_SOURCES[form].open", "self.open", "self.con.read_csv", "default_connection().read_csv", "fuseline.read_csv",
}  # fmt: skip
DOOR = {
    "engine/storage/tables/access.py": "the door",
    "engine/storage/tables/files.py": "finds files by its rules",
    "engine/storage/remote/": "the door to remote files, by the same rules",
    "engine/lakes/": "judges by the same rules what tables name",
    "engine/operators/cpu/scan/read_parts.py": "reads what the door has opened",
    "engine/storage/shards.py": "reads what the door has opened",
    "engine/storage/tables/footers.py": "reads what the door has opened",
    "engine/operators/gpu/scan/scan.py": "reads files that the door has judged, and judges them again",
}
# Files that a query neither names nor changes the path of
OTHERS = {
    "engine/storage/column_store/": "columns in the folder column_store, of files that the door has judged",
    "engine/storage/spill_folders.py": "kernels in cache_dir, columns in column_store, and folders below spill_dir",
    "engine/file_tables/converted_table.py": "files in those folders",
    "engine/distributed/sent_functions.py": "packages that are installed, to tell whose functions these are",
    "engine/writing/": "new files, where the rules of the door let one be made",
    "engine/operators/spill_area.py": "files in those folders",
    "engine/codegen/": "kernels in cache_dir, and sources of the package",
    "engine/operators/cpu/functions/kernels_": "sources of kernels, in the package",
    "engine/operators/cpu/handwritten_kernels.py": "sources of kernels, in the package",
    "engine/observe/roofline.py": "the measured bandwidth, in cache_dir",
    "engine/observe/trace.py": "sources of kernels, shown by debug",
    "engine/observe/profile_exports.py": "sources of kernels, shown by a profile",
    "engine/client/remote_runner.py": "certificates that who connects names",
    "engine/cli/commands.py": "what the command line names",
    "engine/cli/configuration.py": "fuseline.toml",
    "engine/cli/shell/": "the history, and what who types names, by the rules of the door",
    "engine/database/": "a folder that the door has judged, and the files in it",
    "engine/database_statements/export_database.py": "texts of a folder that the door has judged",
    "engine/server/logins.py": "tokens and users that the command line names",
    "engine/server/serving.py": "keys that the command line names",
    "engine/operators/host_memory.py": "limits of the control group",
    "engine/operators/cpu/memory/bandwidth.py": "the processor's name",
}


def opens(node: ast.AST) -> bool:
    """Whether a call opens something; a class of ours may have a method of such a name."""
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    return called.rpartition(".")[2] in OPENING and called not in OURS


def test_files_are_opened_behind_one_door() -> None:
    known = (*DOOR, *OTHERS)
    strays = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)[:60]}"
        for folder in ("engine", "sql")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not str(path.relative_to(ROOT)).startswith(known)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and opens(node)
    ]
    assert strays == []


def test_the_rule_sees_what_opens_a_file() -> None:
    for text in (
        "open('x')",
        "Path('x').open()",
        "pq.ParquetFile('x')",
        "os.open('x', 0)",
        "f(Path(x).read_text())",
    ):
        assert any(opens(node) for node in ast.walk(ast.parse(text)))
