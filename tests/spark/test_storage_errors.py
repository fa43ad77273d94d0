"""What a user is told, and not told, where another file system fails."""

from __future__ import annotations

import json
from threading import Event

import pytest

from sparkonce.spark import storage
from sparkonce.spark.checkpoint import Checkpoint
from sparkonce.spark.storage import Settings, Unreadable

PLACE = "s3a://bucket/orders"


def test_a_key_is_hidden_however_a_url_spells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's client signs with the parts of a token in another order."""
    token = "sv=2026&sig=abc%2Bdef&se=2027"

    def fails(*_: object) -> storage.Read:
        raise OSError("GET 'http://host/c/metadata?se=2027&sig=abc%2Bdef&sv=2026' by hunter%2F2%3D")

    monkeypatch.setitem(storage.ARROWS, "abfss", fails)
    given = Settings(given=json.dumps({"sas_token": token, "token": "hunter/2="}))
    with pytest.raises(Unreadable) as refused:
        storage.read("abfss://c@account.dfs.core/x", "metadata", given)
    assert str(refused.value) == "OSError: GET 'http://host/c/metadata?***' by ***"


def test_a_server_that_never_answers_does_not_hold_a_commit_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never = Event()
    monkeypatch.setitem(storage.ARROWS, "s3", lambda *_: lambda _: never.wait(60))
    monkeypatch.setattr(storage, "LIMIT", 0.1)
    assert Checkpoint(PLACE).look("a", 0).trouble == "TimeoutError: no answer within 0.1 s"
    never.set()
