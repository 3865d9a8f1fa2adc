"""What each mechanism gains: a suite, hot, with one mechanism switched off and with all, in turn (`micro.duel`).

    python -m benchmarks.micro.ablate --device gpu --suite tpch --sf 10 --data data/tpch-sf10 --json out/ablate.json

A ratio of 1.02 says that without the mechanism queries take 2 % longer.  What gains less than 1 % on all suites is better deleted.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.micro.duel import ROOT, Side, compared
from benchmarks.suites import SUITES
from benchmarks.summary import geometric_mean

GPU = {
    "few rows, a step at a time": "operators.gpu.compute_few_rows:MOST_ROWS=0",
    "small tables on the host": "operators.gpu.memory.host_table:MOST_ROWS=0",
    "groups of different keys": "operators.gpu.aggregate.unique_groups:MOST_ROWS=-1",
    "sort keys in one number": "operators.gpu.sort.packed_keys:LEAST_ROWS=1 << 62",
    "texts that are known": "operators.gpu.scan.substring_codes:MOST_KNOWN=0",
    "groups without a row count": "codegen.compile_pipeline:without_count=lambda sink: sink",
    "filters in shared memory": "codegen.cuda.warp_split:LEAST_ROWS=1 << 62",
    "packed counters": "codegen.cuda.packed_counters:CACHED_BYTES=1 << 62",
    "warp compaction": "codegen.cuda.warp_split:QUEUES=False",
    "groups in the order of rows": "operators.gpu.pipeline.ready_pipeline:LEAST_ROWS=1 << 62",
    "clustered self-joins": "codegen.joins.chains:neighbours=lambda *given: None",
    "reduced build sides": "planner.pipelines.reduce_builds:LEAST_GAIN=1e30",
}
CPU = {
    "sparse groups": "codegen.cpu.host_kernels:SPARSE_GROUPS=1 << 62",
    "filters in two passes": "codegen.cpu.emit_cpu:passes=lambda *given: None",
    "clustered self-joins": GPU["clustered self-joins"],
    "reduced build sides": GPU["reduced build sides"],
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--suite", default="tpch", choices=list(SUITES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sf", type=float, default=0.01)
    parser.add_argument("--data", type=Path, help="the folder of the tables, made where not given")
    parser.add_argument("--only", default="", help="parts of mechanisms' names, with commas")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--runs", type=int, default=3, help="of one query in one turn")
    parser.add_argument("--kernels", type=Path, help="a folder for all kernels, kept")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    suite = SUITES[given.suite]
    texts, tables = suite.queries(given.sf), suite.tables(given.sf, given.data)
    mechanisms = GPU if given.device == "gpu" else CPU
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        kernels = (given.kernels or Path(folder) / "kernels").resolve()
        kernels.mkdir(mode=0o700, parents=True, exist_ok=True)
        whole = Side(ROOT, kernels, given.device, tables)
        for name, switch in mechanisms.items():
            if not any(part in name for part in given.only.split(",")):
                continue
            without = Side(ROOT, kernels, given.device, tables, [switch])
            rows = {
                q: compared([whole, without], t, [t] * given.turns, given.runs)
                for q, t in texts.items()
            }
            without.close()
            report[name] = rows
            print(_line(name, rows), flush=True)
            if given.json:
                given.json.parent.mkdir(parents=True, exist_ok=True)
                given.json.write_text(json.dumps(report, indent=1))
        whole.close()


def _line(name: str, rows: dict[str, Any]) -> str:
    equal = {q: row for q, row in rows.items() if row["equal"]}
    mean = geometric_mean([row["ratio"] for row in equal.values()]) or math.nan
    total = sum(r["after"] for r in equal.values()) / sum(r["before"] for r in equal.values())
    most = sorted(equal, key=lambda q: equal[q]["ratio"], reverse=True)[:4]
    shown = ", ".join(f"{q} {equal[q]['ratio']:.2f}" for q in most)
    wrong = "".join(f"; {q} DIFFERS" for q in rows if q not in equal)
    return f"{name:28} geometric mean {mean:.3f}  total {total:.3f}  most: {shown}{wrong}"


if __name__ == "__main__":
    main()
