"""The plot of docs/reliability.md: the rows that readers saw, and the faults meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.chaos import plan
from tools.reliability.records import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def draw(runs: Sequence[Record], path: Path) -> None:
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


def _panel(run: Record, axes: Axes) -> None:
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


def _by_kind(run: Record) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    for one in run["struck"]:
        kind = one["fault"]["kind"]
        named = NETWORK if kind in plan.NETWORK else kind
        times.setdefault(named, []).append(one["at"] + one["seconds"])
    return dict(sorted(times.items(), key=lambda item: item[0] == NETWORK, reverse=True))
