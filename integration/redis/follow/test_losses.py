"""Entries that go before they are read, and streams that are made anew or fall back: noticed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from integration.support.redis import Keys, add, delete, drain, followed, numbers
from redis import Redis

from sparkonce.errors import StoreUnreachable, UnreadLost


def test_a_capped_stream_that_is_made_anew_is_noticed_where_counts_coincide(keys: Keys) -> None:
    made, lenient = keys.feed(), keys.feed(failOnDataLoss="false")
    add(keys.client, keys, range(10))
    at, _ = followed(made, made.begin(), None)
    delete(keys.client, keys)
    add(keys.client, keys, range(15))
    keys.client.xtrim(keys, maxlen=5, approximate=False)
    with pytest.raises(UnreadLost, match=r"no longer has entry"):
        followed(made, at, None)
    assert followed(lenient, at, None)[1] == [*range(10, 15)]


def trim(client: Redis, key: str, _: list[str]) -> None:
    client.xtrim(key, maxlen=7, approximate=False)


def trim_all(client: Redis, key: str, _: list[str]) -> None:
    client.xtrim(key, maxlen=0)


def delete_one(client: Redis, key: str, ids: list[str]) -> None:
    client.xdel(key, ids[-5])


def delete_last(client: Redis, key: str, ids: list[str]) -> None:
    client.xdel(key, ids[-1])


LOSSES = {trim: 3, trim_all: 10, delete_one: 1, delete_last: 1}
"""What someone does to a stream of which ten entries are not read, and how many of these go."""


@pytest.mark.parametrize("lose", LOSSES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("planned", [True, False], ids=["planned", "not planned"])
def test_entries_that_go_before_they_are_read_are_noticed(
    keys: Keys,
    lose: Callable[[Redis, str, list[str]], None],
    planned: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, lenient = keys.feed(), keys.feed(failOnDataLoss="false")
    add(keys.client, keys, range(10))
    after = made.latest()
    ids = add(keys.client, keys, range(10, 20))
    end, splits = made.latest(), made.between(after, made.latest())
    lose(keys.client, keys, ids)
    with pytest.raises(UnreadLost, match=f"{LOSSES[lose]} entries of stream '{keys}'"):
        drain(made, splits if planned else made.between(after, end))
    there = [n for n, one in enumerate(ids, 10) if keys.client.xrange(keys, one, one)]
    with caplog.at_level(logging.WARNING):
        assert numbers(lenient, after, end) == there
    assert f"{LOSSES[lose]} entries" in caplog.text
    add(keys.client, keys, range(20, 25))
    after = lenient if lose is trim_all else made  # it looks like one that was made anew
    assert numbers(after, end, made.latest()) == [*range(20, 25)]


def test_entries_that_go_once_they_are_read_are_no_loss(keys: Keys) -> None:
    made = keys.feed()
    ids = add(keys.client, keys, range(10))
    after = made.latest()
    keys.client.xdel(keys, *ids[2:5])
    add(keys.client, keys, range(10, 20))
    keys.client.xtrim(keys, maxlen=11, approximate=False)
    assert numbers(made, after, made.latest()) == [*range(10, 20)]
    after = made.latest()
    keys.client.xdel(keys, *(entry for entry, _ in keys.client.xrange(keys)))
    add(keys.client, keys, range(20, 25))
    assert numbers(made, after, made.latest()) == [*range(20, 25)]


class History:
    """A stream to which everything happens, and what a query has read of it."""

    def __init__(self, client: Redis, key: str, seed: int) -> None:
        self.client, self.key, self.drawn = client, key, Random(seed)
        self.added = self.now = self.lives = 0
        self.unread, self.backup = set[int](), (b"", 0)

    def add(self) -> None:
        cap = self.drawn.choice([None, None, 3, 8])
        for _ in range(self.drawn.randint(1, 12)):
            self.now, self.added = self.now + 1, self.added + 1
            entry: Any = {"n": self.added}
            id_ = f"{self.now}-{self.lives}"
            self.client.xadd(self.key, entry, id_, maxlen=cap, approximate=False)
            self.unread.add(self.added)

    def trim(self) -> None:
        self.client.xtrim(self.key, maxlen=self.drawn.randint(0, 12), approximate=False)

    def delete(self) -> None:
        there: Any = self.client.xrange(self.key)
        ids = [one for one, _ in there]
        self.client.xdel(self.key, *self.drawn.sample(ids, min(2, len(ids))), "0-1")

    def make_anew(self) -> None:
        self.client.delete(self.key)
        self.lives += 1

    def copy(self) -> None:
        """By entries: the counts are those of what is there."""
        there: Any = self.client.xrange(self.key)
        self.client.delete(self.key)
        for entry, fields in there:
            self.client.xadd(self.key, fields, entry)

    def keep(self) -> None:
        """What a replica has, or a backup."""
        self.backup = self.client.dump(self.key) or b"", self.added

    def fall_back(self) -> None:
        """What came since is lost by the store, and nobody can tell whether there was any."""
        self.lives += 1
        there, added = self.backup
        if there:
            self.client.restore(self.key, 0, there, replace=True)
            self.unread -= {*range(added + 1, self.added + 1)}
            if self.drawn.random() < 0.3:  # its clock is behind
                about: Any = self.client.xinfo_stream(self.key)
                self.now = int(about["last-generated-id"].split(b"-")[0])

    def go_on(self) -> None:
        kinds = [self.add] * 4 + [self.trim, self.delete, self.make_anew, self.copy]
        for _ in range(self.drawn.randint(1, 4)):
            self.drawn.choice([*kinds, self.keep, self.fall_back, self.fall_back])()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_to_a_stream_nothing_is_lost_unnoticed_or_doubled(
    keys: Keys, seed: int
) -> None:
    """Where a loss is tolerated, what comes is all that lies behind the last id.

    Of a stream of which nothing was seen nobody can tell whether it is another one.
    """
    history = History(keys.client, keys, seed)
    made, lenient = keys.feed(), keys.feed(failOnDataLoss="false")
    at, read = made.begin(), list[int]()
    for _ in range(12):
        history.go_on()
        most = history.drawn.choice([None, 3])
        try:
            to, found = followed(made, at, most)
            assert {*found} >= history.unread or not at[keys]["added"]
        except (UnreadLost, StoreUnreachable):
            there: Any = keys.client.xrange(keys, f"({at[keys]['id']}")
            to, found = followed(lenient, at, most)
            assert found == [int(fields[b"n"]) for _, fields in there]
        history.unread.clear()
        at, read = to, read + found
    assert len(read) == len({*read})


@pytest.mark.parametrize("many", [9, 10, 15])
def test_another_stream_is_noticed_whose_ids_are_the_same(keys: Keys, many: int) -> None:
    """By what the last entry holds that was read."""
    made = keys.feed()
    for n in range(10):
        keys.client.xadd(keys, {"n": n}, f"{n + 1}-0")
    at, found = followed(made, made.begin(), 3)
    assert found == [*range(10)]
    keys.client.delete(keys)
    for n in range(many):
        keys.client.xadd(keys, {"n": 50 + n}, f"{n + 1}-0")
    kind, said = (UnreadLost, "is not the one that was read")
    if many < 10:  # a server that lags looks the same
        kind, said = StoreUnreachable, "ends with entry 9-0 on this server"
    with pytest.raises(kind, match=said):
        followed(made, at, None)


def test_a_server_that_lags_is_awaited_and_nothing_counts_as_lost(keys: Keys) -> None:
    """A primary that was paused wakes up, and the query asks it for the state of a stream."""
    made = keys.feed()
    keys.client.xadd(keys, {"n": 1}, "1-0")
    replica = keys.client.dump(keys)
    keys.client.xadd(keys, {"n": 2}, "2-0")
    at, found = followed(made, made.begin(), None)
    assert found == [1, 2]
    ahead = keys.client.dump(keys)
    keys.client.restore(keys, 0, replica, replace=True)
    with pytest.raises(StoreUnreachable, match=r"ends with entry 1-0 on this server.*wait for"):
        followed(made, at, None)
    keys.client.restore(keys, 0, ahead, replace=True)
    keys.client.xadd(keys, {"n": 3}, "3-0")
    assert followed(made, at, None)[1] == [3]


def test_a_last_entry_that_is_deleted_once_it_was_read_is_nothing_new(keys: Keys) -> None:
    made = keys.feed()
    ids = add(keys.client, keys, range(3))
    at, _ = followed(made, made.begin(), None)
    keys.client.xdel(keys, ids[-1])
    assert made.advance(at, made.latest(), None) == at
    assert followed(made, at, 2) == (at, [])
    add(keys.client, keys, range(3, 5))
    assert followed(made, at, None)[1] == [3, 4]


@pytest.mark.parametrize("added", [[], ["3-1", "4-1"]])
def test_a_range_ends_with_the_entry_with_which_it_was_planned(
    keys: Keys, added: list[str]
) -> None:
    """A replica took over that lacked its entries, and whose clock is behind."""
    made = keys.feed()
    keys.client.xadd(keys, {"n": 1}, "1-0")
    after, replica = made.latest(), keys.client.dump(keys)
    for n, id_ in enumerate(["3-0", "5-0"]):
        keys.client.xadd(keys, {"n": n}, id_)
    end = made.latest()
    keys.client.restore(keys, 0, replica, replace=True)
    for id_ in added:
        keys.client.xadd(keys, {"n": 9}, id_)
    with pytest.raises(UnreadLost):
        numbers(made, after, end)


@pytest.mark.parametrize("many", [1, 10, 30])
def test_another_stream_under_the_same_name_is_noticed(keys: Keys, many: int) -> None:
    made, lenient = keys.feed(), keys.feed(failOnDataLoss="false")
    add(keys.client, keys, range(10))
    after = made.latest()
    delete(keys.client, keys)
    with pytest.raises(UnreadLost, match="is not the one that was read"):
        made.between(after, made.latest())
    add(keys.client, keys, range(many))
    end = made.latest()
    with pytest.raises(UnreadLost, match="is not the one that was read"):
        drain(made, made.between(after, end))
    assert numbers(lenient, after, end) == [*range(many)]


def test_a_stream_that_is_made_anew_between_plan_and_read_is_noticed(keys: Keys) -> None:
    made = keys.feed()
    begin = made.begin()
    add(keys.client, keys, range(10))
    (split,) = made.between(begin, made.latest())
    delete(keys.client, keys)
    add(keys.client, keys, range(10))
    with pytest.raises(UnreadLost, match="10 entries"):
        drain(made, [split])
