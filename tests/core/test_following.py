"""How a query goes along a feed: offsets, limits, where it began, and where it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkonce.errors import UnsupportedQuery
from sparkonce.reading import BEGINNING, Follower, Offset, Position


class Numbers:
    """A feed of numbers that begins at its end; each split is a number."""

    unit, of = "rows", ""

    def __init__(self, end: int) -> None:
        self.there = end
        self.asked: list[str] = []

    def begin(self) -> Position:
        self.asked.append("begin")
        return {"n": self.there}

    def latest(self) -> Position:
        return {"n": self.there}

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        return goal if most is None else {"n": min(goal["n"], after["n"] + most)}

    def passed(self, _: Position, goal: Position) -> Position:
        return goal

    def between(self, after: Position, end: Position) -> list[int]:
        return [*range(after["n"] + 1, end["n"] + 1)]

    def behind(self, after: Position, end: Position) -> int:
        return int(end["n"] - after["n"])

    def read(self, split: Any) -> Any:
        raise NotImplementedError


def following(end: int) -> tuple[Numbers, Follower]:
    """A feed, and a query along it."""
    feed = Numbers(end)
    return feed, Follower(feed)


def kept(offset: Offset) -> Offset:
    """As Spark keeps it."""
    found: Offset = json.loads(json.dumps(offset, sort_keys=True))
    return found


def test_an_epoch_has_what_came_since() -> None:
    feed, query = following(3)
    start = query.beginning()
    feed.there = 5
    first = query.end(start, None)
    feed.there = 6
    second = query.end(first, None)
    assert query.between(start, first) == [4, 5]
    assert query.between(first, second) == [6]


def test_where_a_query_began_is_kept_with_its_first_epoch() -> None:
    feed, query = following(3)
    feed.there, start = 3, query.beginning()
    feed.there = 5
    first = query.end(start, None)
    feed.there = 9  # came before Spark asks again where the query begins
    again = Follower(feed)
    assert again.between(kept(again.beginning()), kept(first)) == [4, 5]


def test_where_a_query_begins_is_an_epoch_even_if_there_is_nothing_new() -> None:
    feed, query = following(3)
    first = query.end(query.beginning(), None)
    assert first != BEGINNING
    assert query.between(BEGINNING, first) == []
    feed.there = 4
    assert query.between(first, Follower(feed).end(kept(first), None)) == [4]


def test_nothing_new_is_the_same_offset() -> None:
    query = Follower(Numbers(3))
    first = kept(query.end(query.beginning(), None))
    assert query.end(first, None) == first
    assert query.end(first, 10) == first


def test_a_limit_bounds_an_epoch() -> None:
    feed, query = following(0)
    offset, found = query.beginning(), []
    feed.there = 7
    for _ in range(4):
        end = query.end(offset, 3)
        found.append(query.between(offset, end))
        offset = kept(end)
    assert found == [[1, 2, 3], [4, 5, 6], [7], []]


def test_a_query_that_takes_what_is_there_goes_no_further() -> None:
    feed = Numbers(0)
    start = Follower(feed).end(BEGINNING, None)
    feed.there = 5
    query = Follower(feed)
    query.stop_at_what_is_there()
    feed.there = 99
    offset, ends = kept(start), []
    while (end := query.end(offset, 2)) != offset:
        ends.append(end["at"]["n"])
        offset = kept(end)
    assert ends == [2, 4, 5]


def test_a_new_query_that_takes_what_is_there_begins_before_that() -> None:
    feed, query = following(3)
    query.stop_at_what_is_there()
    feed.there = 99
    end = query.end(query.beginning(), None)
    assert query.between(BEGINNING, end) == []
    assert feed.asked == ["begin"]


def test_an_older_spark_gets_all_there_is() -> None:
    feed, query = following(3)
    start = query.beginning()
    feed.there = 5
    first = query.end_of_all()
    assert query.end_of_all() is first
    feed.there = 6
    assert query.between(start, kept(first)) == [4, 5]
    assert query.between(first, query.end_of_all()) == [6]


def test_an_older_spark_asks_for_an_end_before_it_asks_for_the_beginning() -> None:
    feed, query = following(3)
    first = kept(query.end_of_all())
    assert query.between(query.beginning(), first) == []
    feed.there = 5
    assert query.between(first, kept(query.end_of_all())) == [4, 5]


class Names(Numbers):
    """A feed whose position is empty where nothing is there."""

    def latest(self) -> Position:
        return {"n": self.there} if self.there else {}

    begin = latest

    def advance(self, _: Position, goal: Position, *__: object) -> Position:
        return goal


def test_a_run_of_what_is_there_ends_where_nothing_is_there() -> None:
    feed = Names(0)
    query = Follower(feed)
    start = query.beginning()
    query.stop_at_what_is_there()
    feed.there = 5
    assert query.end(start, None)["at"] == {}


class Quiet(Numbers):
    """A feed in which nothing that is new is a row."""

    def advance(self, after: Position, *_: object) -> Position:
        return after


def test_what_holds_no_row_makes_no_epoch() -> None:
    feed = Quiet(3)
    query, older = Follower(feed), Follower(feed)
    first, begun = query.end(query.beginning(), None), older.end_of_all()
    feed.there = 5
    assert query.end(first, None) == first
    assert older.end_of_all() == begun


def test_a_run_of_what_is_there_goes_past_what_holds_no_row() -> None:
    """Or runs of a schedule would look at more each time, until it is gone."""
    feed = Quiet(3)
    query = Follower(feed)
    first = query.end(query.beginning(), None)
    feed.there = 5
    query.stop_at_what_is_there()
    assert query.end(first, None)["at"] == {"n": 5}


def test_an_older_spark_that_starts_again_goes_on() -> None:
    feed, query = following(3)
    query.beginning()
    first = kept(query.end_of_all())
    feed.there = 5
    assert Follower(feed).between(first, Follower(feed).end_of_all()) == [4, 5]


def test_progress_tells_how_many_rows_a_query_is_behind() -> None:
    feed, query = following(0)
    offset = query.end(query.beginning(), None)
    feed.there = 7
    query.end(offset, 3)
    assert query.report() == {"version": 1, "at": {"n": 7}, "rowsBehind": 4}


def test_a_place_in_one_table_is_none_in_another() -> None:
    """It would be left out for a time, and its changes missed."""
    orders, refunds = Numbers(0), Numbers(0)
    orders.of, refunds.of = "shop.orders", "shop.refunds"
    first = kept(Follower(orders).end(BEGINNING, None))
    orders.there = refunds.there = 5
    second = kept(Follower(orders).end(first, None))
    assert Follower(orders).between(first, second) == [1, 2, 3, 4, 5]
    for ask in (
        lambda: Follower(refunds).end(first, None),
        lambda: Follower(refunds).between(first, second),
        lambda: Follower(refunds).between(BEGINNING, first),
    ):
        with pytest.raises(
            UnsupportedQuery, match=r"of shop\.orders, and .* follows shop\.refunds"
        ):
            ask()
    before_names = {"version": 1, "at": first["at"]}
    assert Follower(orders).between(before_names, second) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("offset", [{"topic": {"0": 1}}, {"version": 2, "at": {"n": 1}}])
def test_an_offset_of_another_source_is_refused(offset: Offset) -> None:
    with pytest.raises(UnsupportedQuery, match="can't read"):
        Follower(Numbers(0)).end(offset, None)
    with pytest.raises(UnsupportedQuery, match="can't read"):
        Follower(Numbers(0)).between(BEGINNING, offset)
