"""The page docs/reliability.md: every figure on it is taken from the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tools.chaos import plan
from tools.partitions import plan as cuts
from tools.partitions.cluster import maker
from tools.reliability.records import DOCS, Record, Records
from tools.tables import table

PAGE = DOCS / "reliability.md"
TEMPLATE = Path(__file__).with_name("page.md")

CODE = "sparkonce"
POINTS = {
    "stage": "a task appends a chunk to the log",
    "prepare": "the driver checks that every chunk exists; in a cluster it fences the lanes",
    "lock": "the driver reads and locks the ledger's row",
    "publish": "one script decides, applies and finishes a small epoch",
    "decide": "the driver writes the ledger",
    "apply": "the rows of a chunk take effect",
    "settle": "the driver records the progress of a cluster's lanes",
    "show": "the alias makes the epoch visible",
    "drop": "the driver deletes chunks",
    "commit": "COMMIT",
    "finish": "the driver records that the epoch is done, or dooms an attempt, in the ledger",
    "clean": "the driver empties the log",
}


def page(records: Records) -> str:
    """The whole page."""
    stores = records.stores
    return TEMPLATE.read_text().format(
        summary=summary(records),
        totals=table(TOTALS, map(_total, stores)),
        kinds=_kinds(stores, [*plan.KILLS, plan.MOVE, *plan.NETWORK, *plan.RARE]),
        points=_points(stores),
        checks=_checks(stores),
        three=_three(records.three),
        struck=_struck(records.three),
        settings=_settings(records.sinks),
        sources=_sources(records.sources),
        cuts=_kinds([*records.sinks, *records.sources], [*dict.fromkeys(cuts.DECK)]),
        made=_made(records.all),
    )


def summary(records: Records) -> str:
    """What all runs together show, in one sentence; README has it too."""
    kills = sum(run["kills"] for run in records.stores)
    kills += sum("killed" in one["fault"] for run in records.three for one in run["struck"])
    cut = [one for run in (*records.sinks, *records.sources) for one in run["struck"]]
    faults = sum(len(run["struck"]) for run in records.all) - kills - len(cut)
    rows = sum(run["rows"] for run in records.all)
    between = f" and {len(cut):,} faults between nodes of clusters" if cut else ""
    return (
        f"{kills:,} kills, {faults:,} failures of network and disk{between} lost none of"
        f" {rows:,} rows in silence, and duplicated none."
    )


TOTALS = (
    *("store", "rows", "kills", "other faults", "drivers", "epochs", "minutes"),
    *("lost", "duplicated", "torn, of reads", "residue"),
)


def _total(run: Record) -> Sequence[object]:
    return (
        run["store"],
        f"{run['rows']:,}",
        run["kills"],
        len(run["struck"]) - run["kills"],
        run["drivers"],
        f"{_epochs(run):,}",
        _minutes(run),
        run["lost"],
        run["duplicated"],
        f"{run['torn']} of {run['reads']:,}",
        len(run["residue"]),
    )


def _epochs(run: Record) -> int:
    return sum(run["epochs"].values()) + len(run["epochs"])


def _minutes(run: Record) -> str:
    return f"{run['seconds'] / 60:.0f}"


def _kinds(runs: Iterable[Record], kinds: Iterable[str]) -> str:
    """How often each kind of fault struck in each run."""
    counts = {run["name"]: Counter(_kind(one) for one in run["struck"]) for run in runs}
    rows = ((kind, *(counts[name][kind] or "" for name in counts)) for kind in kinds)
    return table(("fault", *counts), rows)


def _kind(struck: Record) -> str:
    return str(struck["fault"]["kind"])


def _points(runs: Sequence[Record]) -> str:
    counts = {run["store"]: Counter(one["fault"]["point"] for one in run["struck"]) for run in runs}
    seen = {point for points in counts.values() for point in points if point}
    rows = (
        (point, *(counts[store][point] or "" for store in counts), POINTS[point])
        for point in sorted(seen, key=list(POINTS).index)
    )
    return table(("request", *counts, "what it does"), rows)


def _checks(runs: Sequence[Record]) -> str:
    lines = [
        f"- {run['store']}, {name}: `{seen.split(': ')[0]}`"
        for run in runs
        for name, seen in run["checks"].items()
    ]
    return "\n".join(lines)


def _three(runs: Iterable[Record]) -> str:
    """The totals of the runs over three stores."""
    head = ("run", "rows", "faults", "minutes", "lost or stale", "duplicated")
    rows = (
        (
            run["name"],
            f"{run['rows']:,}",
            len(run["struck"]),
            _minutes(run),
            sum(run["lost"].values()),
            sum(run["duplicated"].values()),
        )
        for run in runs
    )
    return table(head, rows)


def _struck(runs: Sequence[Record]) -> str:
    counts = {run["name"]: Counter(one["fault"] for one in run["struck"]) for run in runs}
    rows = (
        (fault, *(counts[name][fault] or "" for name in counts))
        for fault in sorted({fault for found in counts.values() for fault in found})
    )
    return table(("fault", *counts), rows)


def _settings(runs: Iterable[Record]) -> str:
    """What each cluster lost with its settings, and what the sink noticed."""
    head = ("cluster", "settings", "faults", "new primaries", "rows", "lost by the cluster")
    head += ("of these named", "duplicated", "torn", "what to set")
    rows = (
        (
            f"`{run['store']}`",
            maker(run["store"]).settings,
            len(run["struck"]),
            _elections(run),
            f"{run['rows']:,}",
            f"{run['excused'] + run['lost']:,}",
            f"{run['excused']:,}",
            run["duplicated"],
            run["torn"],
            maker(run["store"]).advice,
        )
        for run in runs
    )
    return table(head, rows)


def _elections(run: Record) -> int:
    return sum(", leader " in one["seen"] for one in run["struck"])


def _sources(runs: Iterable[Record]) -> str:
    """What a query that follows each cluster handed on."""
    head = ("cluster", "faults", "new primaries", "rows", "lost", "duplicated")
    head += ("handed on, then lost by the cluster", "named by the query")
    rows = (
        (
            f"`{run['store']}`",
            len(run["struck"]),
            _elections(run),
            f"{run['rows']:,}",
            run["lost"],
            run["duplicated"],
            run["rolled_back"],
            ", ".join(f"`{name}`" for name in sorted(_named(run))),
        )
        for run in runs
    )
    return table(head, rows)


def _named(run: Record) -> Iterator[str]:
    yield from {note.split(":")[0] for note in run["notes"]}


def _made(runs: Iterable[Record]) -> str:
    """Where and when each run was made, of what, and how to make it again."""
    head = ("run", "seed", "release", "commit", "date", "machine", "with")
    rows = (
        (
            run["name"],
            run["seed"],
            run["versions"][CODE],
            f"`{run['made']['commit']}`",
            run["made"]["date"],
            run["made"]["machine"],
            ", ".join(
                f"{name} {to}" for name, to in run["versions"].items() if name != "sparkonce"
            ),
        )
        for run in runs
    )
    return table(head, rows)
