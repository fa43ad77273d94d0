"""The map of the project's rooms, a picture made from text: `python -m tools.rooms`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html import escape
from typing import NamedTuple


class Room(NamedTuple):
    """A module or a package, and what is in it."""

    path: str
    told: str


class Storey(NamedTuple):
    """Rooms side by side; each storey uses those below it."""

    told: str
    rooms: list[list[Room]]


CORE = "connectors/sparkonce"
CONNECTOR = (
    ("connector.py", "the door: plan, encoder, store, source, feed"),
    ("store.py", "each step of the protocol"),
    ("preflight.py", "what server and target must be like"),
    ("reading", "splits of what is there, and their rows"),
    ("following", "positions in what changes, and the rows between two"),
    ("models", "what a row becomes, and how it is applied"),
    ("target", "what is known of the user's table, keys or index"),
    ("journal", "ledger, log of staged chunks, dead letters"),
    ("server", "how the server is talked to, and its failures"),
)


BINLOG = ("binlog", "the binary log: sets of transactions, rows and values")


def _connector(name: str, *more: tuple[str, str]) -> list[Room]:
    package = f"connectors/pyspark_{name}"
    return [Room(f"{package}/__init__.py", f'format("{name}")')] + [
        Room(f"{package}/{room}", told) for room, told in (*CONNECTOR, *more)
    ]


STOREYS = [
    Storey(
        "Spark calls",
        [
            [
                Room(f"{CORE}/spark", "writers and readers of streams and batches, types"),
                Room(f"{CORE}/sink.py", "what the options describe: store, plan, policy"),
            ],
            [
                Room(f"{CORE}/operate", "the command line: status, recover, gc, forget, check"),
                Room(f"{CORE}/replay.py", "dead letters as a DataFrame"),
                Room(f"{CORE}/following.py", "offsets, limits and restarts of a stream"),
            ],
        ],
    ),
    Storey(
        "exactly once",
        [
            [
                Room(f"{CORE}/exactly_once/staging.py", "a task appends chunks to the log"),
                Room(f"{CORE}/exactly_once/commit.py", "decide, apply, finish, discard"),
                Room(f"{CORE}/exactly_once/guards.py", "every refusal, as pure functions"),
                Room(f"{CORE}/exactly_once/ledger.py", "what a sink remembers"),
            ],
            [
                Room(f"{CORE}/store.py", "what a connector implements"),
                Room(f"{CORE}/reading.py", "and to be read"),
                Room(f"{CORE}/feeds.py", "and to be followed"),
                Room(f"{CORE}/protocol.py", "the vocabulary: plan, chunk, manifest, record"),
                Room(f"{CORE}/change.py", "append, upsert, update, increment, delete"),
                Room(f"{CORE}/values", "Arrow to text and back"),
            ],
        ],
    ),
    Storey(
        "stores",
        [_connector("redis"), _connector("mysql", BINLOG), _connector("elasticsearch")],
    ),
    Storey(
        "proof",
        [
            [
                Room(f"{CORE}/tck/rules", "the rules of sinks and sources, as data"),
                Room(f"{CORE}/tck/suites", "the checks of each rule of a store"),
                Room(f"{CORE}/tck/simulation", "drivers, faults, a store in memory"),
            ],
            [
                Room(f"{CORE}/tck/explore", "random schedules from a seed"),
                Room(f"{CORE}/tck/spark", "rules of streams and batches on real Spark"),
                Room("tests", "what needs no server"),
            ],
            [
                Room("integration", "real servers; chaos, benches, matrix"),
                Room("docs", "start with protocol.md"),
                Room("demo", "what README's first command shows"),
            ],
        ],
    ),
]

WIDTH, MARGIN, LEFT, LINE, GAP = 1180, 14, 135, 40, 22
COLOURS = ("#eef4fb", "#eef8ef", "#fdf5e8", "#f5f0fa")


def svg() -> str:
    """The picture."""
    body, top = [], MARGIN
    for storey, colour in zip(STOREYS, COLOURS, strict=True):
        height = LINE * max(map(len, storey.rooms)) + 2 * MARGIN
        body.append(
            f'<rect x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{height}" rx="8"'
            f' fill="{colour}" stroke="#b8c2cc"/>'
            f'<text x="{2 * MARGIN}" y="{top + height / 2 + 5}" class="storey">'
            f"{escape(storey.told)}</text>"
        )
        body += _rooms(storey, top + MARGIN)
        top += height + GAP
        if storey not in STOREYS[-2:]:
            body.append(f'<text x="{WIDTH / 2}" y="{top - 5}" class="arrow">▼</text>')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top - GAP + MARGIN}"'
        ' font-family="Helvetica, Arial, sans-serif">\n'
        "<style>.path{font:600 13px monospace;fill:#1c2733}.told{font-size:12px;fill:#51606e}"
        ".storey{font-size:15px;font-weight:600;fill:#34495e}"
        ".arrow{font-size:13px;fill:#8795a1;text-anchor:middle}</style>\n"
        '<rect width="100%" height="100%" fill="#ffffff"/>\n'
    )
    return head + "\n".join(body) + "\n</svg>\n"


def _rooms(storey: Storey, top: int) -> Iterator[str]:
    wide = (WIDTH - LEFT - 2 * MARGIN) / len(storey.rooms)
    for column, rooms in enumerate(storey.rooms):
        for line, room in enumerate(rooms):
            x, y = LEFT + 2 * MARGIN + column * wide, top + line * LINE
            path = room.path.removeprefix("connectors/")
            yield (
                f'<text x="{x}" y="{y + 14}" class="path">{escape(path)}</text>'
                f'<text x="{x}" y="{y + 30}" class="told">{escape(room.told)}</text>'
            )


if __name__ == "__main__":
    sys.stdout.write(svg())
