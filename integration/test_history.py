"""What older releases decided and did not finish, the present one finishes; nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import redis
from integration.history import on_elasticsearch, on_mysql, on_redis
from integration.history.story import (
    Recording,
    goes_on,
    is_recovered,
    ledger_format,
    recordings,
)
from integration.servers.finder import Server
from integration.servers.redis import RedisProcess

from sparkonce.errors import StoreRefused
from sparkonce.operate.admin import Admin
from sparkonce.protocol import FORMAT

ENDINGS = pytest.mark.parametrize("ending", [goes_on, is_recovered])


@pytest.fixture
def history_url(mysql_server: Server) -> Iterator[str]:
    yield mysql_server.url
    on_mysql.drop(mysql_server.url)


@ENDINGS
@pytest.mark.parametrize("recording", recordings("redis"), ids=str)
def test_redis_of_an_older_release(
    recording: Recording,
    ending: Callable[..., None],
    private_redis: Callable[..., RedisProcess],
) -> None:
    url = private_redis().url
    on_redis.load(url, recording.path.read_text())
    ending(on_redis.query(url), partial(on_redis.counts, url))


def test_an_epoch_that_redis_0_2_0_stopped_in_mid_row_is_refused_by_name(
    private_redis: Callable[..., RedisProcess],
) -> None:
    """It counted the steps of a row: in the recording, of one field, a step is a row."""
    url = private_redis().url
    (path,) = (one.path for one in recordings("redis") if one.release == "0.2.0")
    on_redis.load(url, path.read_text())
    query = on_redis.query(url)
    with redis.Redis.from_url(url) as client:
        client.hset(f"{{{on_redis.PREFIX}}}:record:{query.name}", "reached", 3)
    before = on_redis.counts(url)
    with pytest.raises(StoreRefused, match="in the middle of a row by an earlier release"):
        query.run(1, [])
    assert on_redis.counts(url) == before


@ENDINGS
@pytest.mark.parametrize("recording", recordings("mysql"), ids=str)
def test_mysql_of_an_older_release(
    recording: Recording, ending: Callable[..., None], history_url: str
) -> None:
    on_mysql.load(history_url, recording.path.read_text())
    query = on_mysql.query(history_url)
    ending(query, partial(on_mysql.counts, history_url))


SEQUENCED = "0.1.0-elasticsearch-upsert"
"""It used `sequenceColumn`."""


def of_elasticsearch(*, sequenced: bool) -> list[Recording]:
    return [one for one in recordings("elasticsearch") if (str(one) == SEQUENCED) == sequenced]


@ENDINGS
@pytest.mark.parametrize("recording", of_elasticsearch(sequenced=False), ids=str)
def test_elasticsearch_of_an_older_release(
    recording: Recording, ending: Callable[..., None], elasticsearch_url: str
) -> None:
    on_elasticsearch.load(elasticsearch_url, recording.path.read_text())
    query = on_elasticsearch.query(elasticsearch_url, recording.mode)
    ending(query, partial(on_elasticsearch.counts, elasticsearch_url))
    on_elasticsearch.drop(elasticsearch_url)


@pytest.mark.parametrize("recording", of_elasticsearch(sequenced=True), ids=str)
def test_rest_of_an_epoch_that_used_what_is_gone_is_refused_by_name_and_stays_decided(
    recording: Recording, elasticsearch_url: str
) -> None:
    on_elasticsearch.load(elasticsearch_url, recording.path.read_text())
    query = on_elasticsearch.query(elasticsearch_url, recording.mode)
    before = on_elasticsearch.counts(elasticsearch_url)
    with pytest.raises(StoreRefused, match="was decided with sequenceColumn"):
        query.run(1, [])
    (sink,) = Admin(query.sink.store).sinks()
    assert sink.state.startswith("decided")
    assert on_elasticsearch.counts(elasticsearch_url) == before
    on_elasticsearch.drop(elasticsearch_url)


def test_the_present_format_is_recorded() -> None:
    """Whoever changes a format records it before, so that there is something to replay."""
    for store in ("redis", "mysql", "elasticsearch"):
        recorded = {ledger_format(one.path.read_text()) for one in recordings(store)}
        assert FORMAT in recorded, f"{store}: run python -m integration.history"
