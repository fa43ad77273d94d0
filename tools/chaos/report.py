"""Makes docs/reliability.md and its plot from the records in docs/reliability/.

`python -m tools.chaos.report` takes every figure on the page from the records.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.chaos import plan
from tools.tables import table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOCS = Path(__file__).parents[2] / "docs"
RECORDS = DOCS / "reliability"
PAGE = DOCS / "reliability.md"
TEMPLATE = Path(__file__).with_name("reliability.md")

PIPELINES = "pipelines.json"

POINTS = {
    "stage": "a task appends a chunk to the log",
    "prepare": "the driver checks that every chunk exists",
    "lock": "the driver reads and locks the ledger's row",
    "publish": "one script decides, applies and finishes a small epoch",
    "decide": "the driver writes the ledger",
    "apply": "the rows of a chunk take effect",
    "show": "the alias makes the epoch visible",
    "drop": "the driver deletes chunks",
    "commit": "COMMIT",
    "finish": "the driver records that the epoch is done, or dooms an attempt, in the ledger",
    "clean": "the driver empties the log",
}

Record = dict[str, Any]


def records(home: Path = RECORDS) -> tuple[list[Record], Record]:
    """The recorded runs, one for each store, and the run of the pipelines."""
    files = [path for path in sorted(home.glob("*.json")) if path.name != PIPELINES]
    return [_good(path) for path in files], _good(home / PIPELINES)


def _good(path: Path) -> Record:
    run: Record = json.loads(path.read_text())
    if not run["good"]:
        raise ValueError(f"not good: {path.stem}")
    return run


def page(runs: Sequence[Record], pipelines: Record) -> str:
    """The whole page."""
    return TEMPLATE.read_text().format(
        totals=_totals(runs),
        kinds=_kinds(runs),
        points=_points(runs),
        checks=_checks(runs),
        command=f"make chaos STORE=pipelines KILLS={pipelines['kills']} ROWS={pipelines['asked']}"
        f" SEED={pipelines['seed']}",
        pipelines=_pipelines(pipelines),
        struck=_struck(pipelines),
    )


def _pipelines(run: Record) -> str:
    rows = (
        (name, run["epochs"][name] + 1, run["lost"][name], run["duplicated"][name])
        for name in run["epochs"]
    )
    return table(("pipeline", "epochs", "lost or stale", "duplicated"), rows)


def _struck(run: Record) -> str:
    counts = Counter(one["fault"] for one in run["struck"])
    return table(("fault", "times"), sorted(counts.items()))


def _totals(runs: Sequence[Record]) -> str:
    head = ("store", "rows", "kills", "other faults", "drivers", "epochs", "minutes", "seed")
    head += ("lost", "duplicated", "torn, of reads", "residue")
    return table(head, map(_total, runs))


def _total(run: Record) -> Sequence[object]:
    version = run["versions"][run["store"]]
    return (
        f"{run['store']} {version}",
        f"{run['rows']:,}",
        run["kills"],
        len(run["struck"]) - run["kills"],
        run["drivers"],
        f"{sum(run['epochs'].values()) + len(run['epochs']):,}",
        f"{run['seconds'] / 60:.0f}",
        run["seed"],
        run["lost"],
        run["duplicated"],
        f"{run['torn']} of {run['reads']:,}",
        len(run["residue"]),
    )


def _kinds(runs: Sequence[Record]) -> str:
    counts = {run["store"]: Counter(_kind(one) for one in run["struck"]) for run in runs}
    kinds = [*plan.KILLS, *plan.NETWORK, *plan.RARE]
    rows = ((kind, *(counts[store][kind] for store in counts)) for kind in kinds)
    return table(("fault", *counts), rows)


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


def _kind(struck: Record) -> str:
    return str(struck["fault"]["kind"])


def main() -> None:
    from tools.chaos.report import draw

    runs, pipelines = records()
    PAGE.write_text(page(runs, pipelines))
    draw(runs, RECORDS / "pace.svg")
    draw(runs, RECORDS / "pace.png")


if __name__ == "__main__":
    main()


COLOURS = {
    plan.DRIVER: "#c0392b",
    plan.TREE: "#e67e22",
    plan.EXECUTOR: "#8e44ad",
    plan.WORKER: "#2980b9",
    plan.ZOMBIE: "#111111",
    plan.STORE: "#16a085",
    plan.STRAGGLER: "#b7950b",
    plan.DISK: "#7f5539",
}
OTHER = "#bbbbbb"
NETWORK = "network"


def draw(runs: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw one panel for each run."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "sparkonce"  # the same records make the same file
    figure = Figure(figsize=(10, 1.2 + 2.6 * len(runs)), layout="constrained")
    panels = figure.subplots(len(runs), 1, squeeze=False)[:, 0]
    for run, axes in zip(runs, panels, strict=True):
        _panel(run, axes)
    panels[-1].set_xlabel("minutes")
    known: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        known.update(dict(zip(labels, handles, strict=True)))
    figure.legend(known.values(), known.keys(), loc="outside upper center", ncols=5, frameon=False)
    figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)


def _panel(run: dict[str, Any], axes: Axes) -> None:
    minutes = [at / 60 for at, _ in run["pace"]]
    rows = [seen / 1000 for _, seen in run["pace"]]
    axes.plot(minutes, rows, color="#333333", linewidth=1.4, zorder=3)
    for kind, times in _by_kind(run).items():
        colour = COLOURS.get(kind, OTHER)
        for number, at in enumerate(times):
            label = kind if number == 0 else None
            axes.axvline(at / 60, color=colour, linewidth=0.9, label=label, zorder=1)
    axes.set_title(f"{run['store']}: {run['rows']:,} rows, {run['kills']} kills", loc="left")
    axes.set_ylabel("rows seen, thousands")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    axes.spines[["top", "right"]].set_visible(False)


def _by_kind(run: dict[str, Any]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    for one in run["struck"]:
        kind = one["fault"]["kind"]
        named = NETWORK if kind in plan.NETWORK else kind
        times.setdefault(named, []).append(one["at"] + one["seconds"])
    return dict(sorted(times.items(), key=lambda item: item[0] == NETWORK, reverse=True))
