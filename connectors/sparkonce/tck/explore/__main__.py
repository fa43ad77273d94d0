"""``python -m sparkonce.tck.explore --seeds 100000``: explores in several processes."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from sparkonce.tck.explore.explorer import Report, explore, history
from sparkonce.tck.explore.scenario import LOSSES
from sparkonce.tck.memory_subject import PROFILES

SHARE = 200
"""The number of seeds that a process plays before it reports."""


def in_processes(
    seeds: range, play: Callable[[range], Report], workers: int
) -> Iterator[tuple[int, Report]]:
    """Reports of shares of the seeds, each with its number of seeds; in any order."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context) as pool:
        shares = [seeds[at : at + SHARE] for at in range(0, len(seeds), SHARE)]
        running = {pool.submit(play, share): len(share) for share in shares}
        for done in as_completed(running):
            yield running[done], done.result()
            if done.result().failed:
                pool.shutdown(wait=False, cancel_futures=True)
                return


def show(report: Report, console: Console) -> None:
    """Print the coverage."""
    table = Table("schedules that had", *PROFILES)
    for what in sorted({what for _, what in report.covered}):
        table.add_row(what, *(str(report.covered[name, what]) for name in PROFILES))
    console.print(table)


@click.command(help=__doc__)
@click.option("--seeds", type=click.IntRange(min=1), default=3000, help="The number of schedules.")
@click.option("--start", type=int, default=0, help="The first seed.")
@click.option("--seed", type=int, help="Play only this seed, and print its history.")
@click.option("--workers", type=click.IntRange(min=1), default=2, help="The number of processes.")
@click.option("--profile", type=click.Choice(["all", *PROFILES]), default="all")
@click.option(
    "--losses",
    type=click.FloatRange(0, 1),
    default=LOSSES,
    help="The share of schedules that lose data.",
)
def main(
    seeds: int, start: int, seed: int | None, workers: int, profile: str, losses: float
) -> None:
    """Explore, and exit with status 1 if a rule was broken."""
    console, begun, report = Console(stderr=True), time.monotonic(), Report()
    if seed is not None:
        report.add(explore([seed], profile, losses=losses))
        if not report.failed:
            print("\n".join(history(seed, profile, losses=losses)))
    else:
        chosen = range(start, start + seeds)
        with Progress(console=console) as progress:
            bar = progress.add_task("schedules", total=seeds)
            for number, part in in_processes(
                chosen, partial(explore, profile=profile, losses=losses), workers
            ):
                report.add(part)
                progress.advance(bar, number)
        show(report, console)
    for failure in report.failures:
        print(failure)
    print(
        f"explore: schedules={report.schedules.total()} failed={report.failed}"
        f" profiles={len(report.schedules)} seconds={time.monotonic() - begun:.0f}"
    )
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
