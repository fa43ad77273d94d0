"""The offsets of the last two decided epochs, each in a record beside the ledger.

Spark goes on from those of the epoch before, so both may be needed; see `lost_offsets`.
"""

from __future__ import annotations

import json

from sparkonce.checkpoint import Offsets
from sparkonce.guards import Driver
from sparkonce.ledger import Ledger
from sparkonce.protocol import Beside, Record, Store, digest

OFFSETS = "offsets/"


def _name(sink: str, epoch: int) -> str:
    return f"{OFFSETS}{digest(sink)}/{epoch % 2}"


def beside(driver: Driver) -> Beside | None:
    """What a decision writes of its offsets; None if they can't be read, or are too long."""
    packed = driver.offsets.packed if driver.offsets else None
    if packed is None:
        return None
    body = {"query": driver.query_id, "epoch": driver.epoch, "offsets": packed}
    return Beside(_name(driver.name, driver.epoch), json.dumps(body))


def kept(store: Store, ledger: Ledger) -> dict[int, Offsets]:
    """The offsets of the last decided epoch, and of the one before, as far as they are kept."""
    found: dict[int, Offsets] = {}
    for epoch in (ledger.epoch, ledger.epoch - 1):
        record = store.read(_name(ledger.name, epoch))
        told = json.loads(record.body) if record.revision else {}
        if (told.get("query"), told.get("epoch")) == (ledger.query_id, epoch):
            found[epoch] = Offsets.unpacked(told["offsets"])
    newest = found.get(ledger.epoch)
    if newest is not None and newest.digest != ledger.offsets:
        del found[ledger.epoch]
    return found


def forget(store: Store, sink: str) -> None:
    """Take away what is kept of a sink."""
    for epoch in (0, 1):
        record = store.read(_name(sink, epoch))
        if record.revision:
            store.swap(_name(sink, epoch), Record(), record.stamp)
