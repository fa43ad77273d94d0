"""The offsets of the last two decided epochs, each in a record beside the ledger.

Spark goes on from those of the epoch before, so both may be needed; see `lost_offsets`.
"""

from __future__ import annotations

import json

from sparkonce.codec import DELETE, reading
from sparkonce.exactly_once.driver import Driver
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.exactly_once.offsets import Offsets
from sparkonce.protocol import AuxiliaryRecord, Record, digest
from sparkonce.store import Store

OFFSETS = "offsets/"


def _name(sink: str, epoch: int) -> str:
    # Two names in turns: that of epoch N - 2 is written over, and nothing has to be dropped.
    return f"{OFFSETS}{digest(sink)}/{epoch % 2}"


def beside(driver: Driver) -> AuxiliaryRecord | None:
    """What a decision writes of its offsets; None if they can't be read, or are too long."""
    packed = driver.offsets.packed if driver.offsets else None
    if packed is None:
        return None
    body = {"query": driver.query_id, "epoch": driver.epoch, "offsets": packed}
    return AuxiliaryRecord(_name(driver.name, driver.epoch), json.dumps(body))


def kept(store: Store, ledger: Ledger) -> dict[int, Offsets]:
    """The offsets of the last decided epoch, and of the one before, as far as they are kept."""
    found: dict[int, Offsets] = {}
    decided = {
        ledger.decision.epoch: ledger.decision.offsets,
        ledger.decision.epoch - 1: ledger.decision.former_offsets,
    }
    for epoch, digest_of in decided.items():
        name = _name(ledger.name, epoch)
        record = store.read(name)
        if record.revision:
            with reading(name, DELETE):
                offsets = Offsets.unpacked(json.loads(record.body)["offsets"])
            # A store may write them ahead of the decision, and others that were never decided.
            if offsets.digest == digest_of:
                found[epoch] = offsets
    return found


def records(store: Store, sink: str) -> dict[str, Record]:
    """What is kept of a sink, by name, whatever its epochs."""
    return {name: store.read(name) for name in (_name(sink, 0), _name(sink, 1))}
