"""Makes docs/compatibility.md from the records of the cells in docs/compatibility/.

`python -m integration.matrix.report`; what is told of a cell comes from its record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from integration.matrix.cells import BEFORE, PYTHONS, RELEASES
from integration.matrix.outcomes import NOT_RUN, PASSED, Record, told
from integration.matrix.platforms import PLATFORMS, Platform

DOCS = Path(__file__).parents[2] / "docs"
RECORDS = DOCS / "compatibility"
PAGE = DOCS / "compatibility.md"
TEMPLATE = Path(__file__).with_name("compatibility.md")
PACKAGES = ("python", "java", "pyarrow", "redis", "pymysql", "elasticsearch")
SERVERS = ("redis", "mysql", "elasticsearch")


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
    rows = (
        [f"Python {python}", *(_of(known, spark, python) for spark in RELEASES)]
        for python in PYTHONS
    )
    return _table(["", *(f"PySpark {spark}" for spark in RELEASES)], rows)


def _of(known: Mapping[str, Record], spark: str, python: str) -> str:
    if python not in RELEASES[spark]:
        return "PySpark does not list it"
    record = known.get(f"{spark}/{python}", {"outcome": NOT_RUN})
    return told(record) + (f", {len(record['findings'])} checks" if "findings" in record else "")


def _versions(known: Mapping[str, Record]) -> str:
    head = ("cell", "on", *PACKAGES, *(f"server: {name}" for name in SERVERS), "result")
    return _table(head, (_version(record) for record in _ran(known)))


def _version(record: Record) -> Sequence[str]:
    packages = (record["versions"][name] for name in PACKAGES)
    servers = (record["servers"].get(name, "none") for name in SERVERS)
    return (f"`{record['cell']}`", record["on"], *packages, *servers, told(record))


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
    return _table(("cell", "rule Q10", "the sink warned"), rows)


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
    return _table(head, rows)


def _sail(record: Record | None) -> str:
    if record is None or "steps" not in record:
        return f"Not run: {told(record) if record else 'there is no record'}.\n"
    rows = (
        (one["store"], one["what"], one["rows"], "yes" if one["exact"] else f"no: {one['why']}")
        for one in record["steps"]
    )
    found = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    return f"{found}.\n\n{_table(('store', 'job', 'rows then', 'each once'), rows)}"


def _before(record: Record | None) -> str:
    if record is None or "refused" not in record:
        return f"Not run: {told(record) if record else 'there is no record'}."
    return f"> {' '.join(record['refused'].split())}"


def _platforms(known: Mapping[str, Record]) -> str:
    head = ("platform", "its Spark", "its Python", "its Java", "run here, with pip", "only read")
    return _table(head, (_platform(one, known) for one in PLATFORMS))


def _platform(one: Platform, known: Mapping[str, Record]) -> Sequence[str]:
    ran = [name for name in one.cells if known.get(name, {}).get("outcome") == PASSED]
    cells = ", ".join(f"`{name}`" for name in ran) or "nothing"
    return (one.name, one.spark, one.python, one.java, cells, one.only_read)


def _table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def write() -> None:
    PAGE.write_text(page(records()))


if __name__ == "__main__":
    write()
