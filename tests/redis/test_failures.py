"""What becomes of Redis's errors."""

from __future__ import annotations

import pytest
import redis
from redis import exceptions

from pyspark_redis.server.address import Sentinels
from pyspark_redis.server.failures import Demoted, OtherType, translate
from sparkonce.errors import StoreError, StoreRefused, StoreUnreachable

LOCAL = (
    "Script attempted to access a non local key in a cluster node script: f9, on @user_script:1."
)
NEWER = "ERR Attempted to access a non local key in a cluster node"
DOWN = (
    "Script attempted to execute a command while the cluster is down script: f9, on @user_script:1."
)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        # As redis-py raises them, which cuts the code of some.
        (exceptions.ClusterDownError("The cluster is down"), StoreUnreachable),
        (exceptions.MasterDownError("Link with MASTER is down"), StoreUnreachable),
        (exceptions.TryAgainError("Multiple keys request during rehashing"), StoreUnreachable),
        (exceptions.MovedError("4576 127.0.0.1:1"), StoreUnreachable),
        (exceptions.AskError("4576 127.0.0.1:1"), StoreUnreachable),
        (redis.ResponseError("MOVED 9330 127.0.0.1:1"), StoreUnreachable),
        (exceptions.BusyLoadingError("Redis is loading"), StoreUnreachable),
        (redis.ResponseError("BUSY Redis is busy running a script"), StoreUnreachable),
        (redis.ResponseError(LOCAL), StoreUnreachable),
        (redis.ResponseError(NEWER), StoreUnreachable),
        (redis.ResponseError(DOWN), StoreUnreachable),
        (exceptions.ReadOnlyError("You can't write"), Demoted),
        (redis.ResponseError("WRONGTYPE Operation against a key"), OtherType),
    ],
)
def test_what_passes_is_told_from_what_is_refused(
    error: redis.RedisError, kind: type[StoreError]
) -> None:
    assert type(translate(error, "asking")) is kind


def test_a_sentinel_that_asks_for_a_password_is_named_once_no_other_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Asked:
        def __init__(self, host: str, *_: object, **__: object) -> None:
            self.host = host

        def __enter__(self) -> Asked:
            return self

        def __exit__(self, *_: object) -> None: ...

        def sentinel_get_master_addr_by_name(self, _: str) -> object:
            if self.host == "locked":
                raise exceptions.AuthenticationError("Authentication required.")
            if self.host == "away":
                raise redis.ConnectionError("refused")
            return "primary", 6379

    monkeypatch.setattr(redis, "Redis", Asked)
    locked, away, open_ = (("locked", 1), ("away", 2), ("open", 3))
    assert Sentinels((locked, open_), "m").primary() == ("primary", 6379)
    with pytest.raises(redis.ResponseError) as refused:
        Sentinels((locked, away), "m").primary()
    error = translate(refused.value, "asking")
    assert type(error) is StoreRefused
    assert "Sentinel locked:1 asks for a password" in str(error)
    assert "requirepass" in error.todo
