"""Makes docs/compatibility.md from the records of the cells in docs/compatibility/.

`python -m tools.matrix.report` takes every cell of the page from a record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tools.matrix import BEFORE, NOT_RUN, PYTHONS, RELEASES, Record, summary
from tools.tables import table

DOCS = Path(__file__).parents[2] / "docs"
RECORDS = DOCS / "compatibility"
PAGE = DOCS / "compatibility.md"
TEMPLATE = Path(__file__).with_name("compatibility.md")
PACKAGES = ("python", "java", "pyarrow", "redis", "pymysql", "elasticsearch")
SERVERS = ("redis", "mysql", "elasticsearch")
HEAD = ("cell", *PACKAGES, *(f"{name} server" for name in SERVERS), "run on", "result")


def records(home: Path = RECORDS) -> dict[str, Record]:
    """The records by cell."""
    found = [json.loads(path.read_text()) for path in sorted(home.glob("*.json"))]
    return {record["cell"]: record for record in found}


def page(known: Mapping[str, Record]) -> str:
    """The whole page."""
    return TEMPLATE.read_text().format(
        grid=_grid(known),
        versions=_versions(_with("findings", known)),
        drawn=_drawn(_with("findings", known)),
        chain=_chain(known.get("chain", {})),
        before=" ".join(known.get(BEFORE, {}).get("refused", NOT_RUN).split()),
        sail=_sail(known.get("sail", {})),
    )


def write() -> None:
    PAGE.write_text(page(records()))


def _grid(known: Mapping[str, Record]) -> str:
    rows = ([python, *(_of(known, spark, python) for spark in RELEASES)] for python in PYTHONS)
    return table(["Python", *(f"PySpark {spark}" for spark in RELEASES)], rows)


def _of(known: Mapping[str, Record], spark: str, python: str) -> str:
    if python not in RELEASES[spark]:
        return "PySpark does not list it"
    record = known.get(f"{spark}/{python}", {"outcome": NOT_RUN})
    return summary(record) + (f", {len(record['findings'])} checks" if "findings" in record else "")


def _with(what: str, known: Mapping[str, Record]) -> list[Record]:
    return [record for record in known.values() if what in record]


def _versions(ran: list[Record]) -> str:
    rows = [_version(record) for record in ran]
    shared = {name for name in HEAD if len({row[name] for row in rows}) == 1}
    alike = ", ".join(f"{name} {rows[0][name]}" for name in HEAD if name in shared)
    head = [name for name in HEAD if name not in shared]
    return f"In all: {alike}.\n\n" * bool(alike) + table(
        head, ([row[name] for name in head] for row in rows)
    )


def _version(record: Record) -> Mapping[str, str]:
    packages = {name: record["versions"][name] for name in PACKAGES}
    servers = {f"{name} server": record["servers"].get(name, "none") for name in SERVERS}
    cell = {"cell": f"`{record['cell']}`", "run on": record["on"], "result": summary(record)}
    return cell | packages | servers


def _drawn(ran: list[Record]) -> str:
    rows = [
        (f"`{record['cell']}`", finding["outcome"], "yes" if record["warned"] else "no")
        for record in ran
        for finding in record["findings"]
        if finding["rule"] == "Q10"
    ]
    return table(("cell", "rule Q10", "the sink warned"), rows)


def _chain(record: Record) -> str:
    head = ("step", "PySpark", "epoch replayed", "rows in all", "each once")
    rows = (
        (
            n,
            one["spark"],
            "" if one["replayed"] is None else one["replayed"],
            f"{one['rows']:,}",
            "yes" if one["exact"] else f"no: {one['why']}",
        )
        for n, one in enumerate(record.get("steps", ()), start=1)
    )
    return table(head, rows)


def _sail(record: Record) -> str:
    steps = record.get("steps", [])
    stores = list(dict.fromkeys(one["store"] for one in steps))
    jobs = list(dict.fromkeys(one["what"] for one in steps))
    seen = {(one["what"], one["store"]): _counted(one) for one in steps}
    rows = ((job, *(seen.get((job, store), NOT_RUN) for store in stores)) for job in jobs)
    found = ", ".join(f"{name} {number}" for name, number in record.get("versions", {}).items())
    return f"{found}.\n\n{table(('job', *stores), rows)}"


def _counted(step: Record) -> str:
    return f"{step['rows']} rows" if step["exact"] else f"not each once: {step['why']}"


if __name__ == "__main__":
    write()
