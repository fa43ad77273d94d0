"""Makes docs/compatibility.md from the records of the cells in docs/compatibility/.

`python -m tools.matrix.report`; what is told of a cell comes from its record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tools.matrix.cells import BEFORE, PYTHONS, RELEASES
from tools.matrix.outcomes import NOT_RUN, PASSED, Record, told
from tools.matrix.platforms import PLATFORMS, Platform
from tools.tables import table

DOCS = Path(__file__).parents[2] / "docs"
RECORDS = DOCS / "compatibility"
PAGE = DOCS / "compatibility.md"
TEMPLATE = Path(__file__).with_name("compatibility.md")
PACKAGES = ("python", "java", "pyarrow", "redis", "pymysql", "elasticsearch")
SERVERS = ("redis", "mysql", "elasticsearch")
HEAD = ("cell", *PACKAGES, *(f"{name} server" for name in SERVERS), "run on", "result")


def records(home: Path = RECORDS) -> dict[str, Record]:
    """What is on record, by cell."""
    found = [json.loads(path.read_text()) for path in sorted(home.glob("*.json"))]
    return {record["cell"]: record for record in found}


def page(known: Mapping[str, Record]) -> str:
    """The whole page."""
    return TEMPLATE.read_text().format(
        grid=_grid(known),
        versions=_versions(known),
        drawn=_drawn(known),
        chain=_chain(known.get("chain")),
        before=_before(known.get(BEFORE)),
        sail=_sail(known.get("sail")),
        platforms=_platforms(known),
    )


def _grid(known: Mapping[str, Record]) -> str:
    rows = ([python, *(_of(known, spark, python) for spark in RELEASES)] for python in PYTHONS)
    return table(["Python", *(f"PySpark {spark}" for spark in RELEASES)], rows)


def _of(known: Mapping[str, Record], spark: str, python: str) -> str:
    if python not in RELEASES[spark]:
        return "PySpark does not list it"
    record = known.get(f"{spark}/{python}", {"outcome": NOT_RUN})
    return told(record) + (f", {len(record['findings'])} checks" if "findings" in record else "")


def _versions(known: Mapping[str, Record]) -> str:
    rows = [_version(record) for record in _ran(known)]
    shared = {name for name in HEAD if len({row[name] for row in rows}) == 1}
    alike = ", ".join(f"{name} {rows[0][name]}" for name in HEAD if name in shared)
    head = [name for name in HEAD if name not in shared]
    return f"In all: {alike}.\n\n" * bool(alike) + table(
        head, ([row[name] for name in head] for row in rows)
    )


def _version(record: Record) -> Mapping[str, str]:
    packages = {name: record["versions"][name] for name in PACKAGES}
    servers = {f"{name} server": record["servers"].get(name, "none") for name in SERVERS}
    cell = {"cell": f"`{record['cell']}`", "run on": record["on"], "result": told(record)}
    return cell | packages | servers


def _ran(known: Mapping[str, Record]) -> Iterator[Record]:
    return (record for record in known.values() if "findings" in record)


def _drawn(known: Mapping[str, Record]) -> str:
    rows = [
        (f"`{record['cell']}`", finding["outcome"], "yes" if record["warned"] else "no")
        for record in _ran(known)
        for finding in record["findings"]
        if finding["rule"] == "Q10"
    ]
    if not rows:
        return "Not run: there is no record.\n"
    return table(("cell", "rule Q10", "the sink warned"), rows)


def _chain(record: Record | None) -> str:
    if record is None or "steps" not in record:
        return f"Not run: {told(record) if record else 'there is no record'}.\n"
    head = ("step", "PySpark", "epoch replayed", "rows in all", "each once")
    rows = (
        (
            n,
            one["spark"],
            "" if one["replayed"] is None else one["replayed"],
            f"{one['rows']:,}",
            "yes" if one["exact"] else f"no: {one['why']}",
        )
        for n, one in enumerate(record["steps"], start=1)
    )
    return table(head, rows)


def _sail(record: Record | None) -> str:
    if record is None or "steps" not in record:
        return f"Not run: {told(record) if record else 'there is no record'}.\n"
    stores = list(dict.fromkeys(one["store"] for one in record["steps"]))
    jobs = list(dict.fromkeys(one["what"] for one in record["steps"]))
    seen = {(one["what"], one["store"]): _counted(one) for one in record["steps"]}
    rows = ((job, *(seen.get((job, store), NOT_RUN) for store in stores)) for job in jobs)
    found = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    return f"{found}.\n\n{table(('job', *stores), rows)}"


def _counted(step: Record) -> str:
    return f"{step['rows']} rows" if step["exact"] else f"not each once: {step['why']}"


def _before(record: Record | None) -> str:
    if record is None or "refused" not in record:
        return f"Not run: {told(record) if record else 'there is no record'}."
    return f"> {' '.join(record['refused'].split())}"


def _platforms(known: Mapping[str, Record]) -> str:
    head = ("platform", "its Spark", "its Python", "its Java", "run here, with pip", "only read")
    return table(head, (_platform(one, known) for one in PLATFORMS))


def _platform(one: Platform, known: Mapping[str, Record]) -> Sequence[str]:
    ran = [name for name in one.cells if known.get(name, {}).get("outcome") == PASSED]
    cells = ", ".join(f"`{name}`" for name in ran) or "nothing"
    return (one.name, one.spark, one.python, one.java, cells, one.only_read)


def write() -> None:
    PAGE.write_text(page(records()))


if __name__ == "__main__":
    write()
