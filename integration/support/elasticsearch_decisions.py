"""Epochs that are decided and not applied, or applied again by a driver that is late."""

from __future__ import annotations

import time
from typing import Any

import pytest
from integration.support.epochs import LONG_AGO, ElasticsearchQuery


def apply_again(query: ElasticsearchQuery, decided: Any) -> None:
    """Send a decided epoch once more, as a driver does that was overtaken and does not know it."""
    store = query.sink.store
    is_over = store.records.is_over(decided)
    store.records.is_over = lambda _: is_over
    store.records.advance = lambda *_, **__: None
    store.records.progress = lambda *_: 0
    try:
        store.apply(decided, since=time.monotonic() - LONG_AGO)
    finally:
        del store.records.is_over, store.records.advance, store.records.progress


def decide(query: ElasticsearchQuery, epoch: int, *partitions: Any) -> Any:
    """Decide an epoch, and apply nothing; its manifest."""
    receipts, kept = query.stage(epoch, *partitions), {}
    store = query.sink.store

    def dies(manifest: Any, *_: Any) -> None:
        kept["manifest"] = manifest
        raise KeyboardInterrupt

    store.apply = dies
    try:
        with pytest.raises(KeyboardInterrupt):
            query.commit(epoch, receipts)
    finally:
        del store.apply
    return kept["manifest"]


def keep_log(query: ElasticsearchQuery) -> None:
    """Let nothing be cleaned, so that a late driver still finds its chunks."""
    query.sink.store.discard = lambda *_: None
