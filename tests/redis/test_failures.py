"""What becomes of Redis's errors."""

from __future__ import annotations

import pytest
import redis
from redis import exceptions

from pyspark_redis.server.failures import Demoted, translate
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
        (redis.ResponseError("WRONGTYPE Operation against a key"), StoreRefused),
    ],
)
def test_what_passes_is_told_from_what_is_refused(
    error: redis.RedisError, kind: type[StoreError]
) -> None:
    assert type(translate(error, "asking")) is kind
