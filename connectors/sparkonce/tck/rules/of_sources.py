"""The rules of a source of streams, which are seen from outside: of any source."""

from __future__ import annotations

from collections.abc import Sequence

from sparkonce.tck.rules.rule import MAY, MUST, Rule

SOURCES: Sequence[Rule] = (
    Rule(
        "F01",
        MUST,
        "Every row that is appended comes once, however the epochs are cut.",
        "This is what a source is for.",
        "the ends of ranges: one of them belongs to a range, the other to the next; splits that"
        " overlap, or have holes",
    ),
    Rule(
        "F02",
        MUST,
        "An epoch that is replayed has the rows that it had; one that was changed since may be"
        " missing where a later epoch has it, if the source says so.",
        "Each crash between the rows and Spark's note of them replays an epoch: a sink that skips"
        " it by its number never sees what it had not; one that writes it again keeps what is new.",
        "partitions(start, end): reads that go on to what is there now, or that take rows away",
    ),
    Rule(
        "F03",
        MUST,
        "A query that was stopped goes on where it was: rows that were appended meanwhile come"
        " once, and none comes twice.",
        "Queries are down for minutes and for days.",
        "latestOffset: only the offset that Spark gives tells where a query is, not the memory of"
        " a process, nor what the store knows of a reader",
    ),
    Rule(
        "F04",
        MUST,
        "Where a query begins is decided once: a query from the end whose first epoch fails, and is"
        " replayed after a restart, has each row that was appended since it began, once.",
        "Spark keeps where epochs end, and asks anew where the first one begins: the end is"
        " elsewhere by then, and the rows between are lost.",
        "initialOffset: what it says must be kept, for example in the first epoch's end",
    ),
    Rule(
        "F05",
        MUST,
        "With a limit no epoch has more than that, or than the source says; all rows come, and in"
        " the order in which they were appended, if the source says so.",
        "After a night without a query the first epoch has all of the night, and no memory for it.",
        "latestOffset: the limit that it is given; getDefaultReadLimit",
    ),
    Rule(
        "F06",
        MUST,
        "A query of what is available now has all that was there when it began, and ends while"
        " somebody goes on appending.",
        "Scheduled jobs run so; one that follows the store never ends.",
        "prepareForTriggerAvailableNow: latestOffset must not go beyond what was there then",
    ),
    Rule(
        "F07",
        MUST,
        "Rows that vanished before they were read, or read again, make the query fail, and what it"
        " gave before is right; where that is tolerated, it goes on with what is there, once.",
        "Streams are trimmed, topics expire: a query that is too slow would skip rows unnoticed.",
        "how many rows a range should have, and whether its first one is there",
    ),
    Rule(
        "F08",
        MUST,
        "Offsets are JSON: spelt in another way they mean the same. They hold no pickles, and no"
        " paths of the machine.",
        "Spark parses and prints them, people restore them, another machine and release reads"
        " them.",
        "offsets that are compared or read as texts, or by the order of their keys",
    ),
    Rule(
        "F09",
        MUST,
        "Where nothing is new, no epoch runs; after a restart, at most one without rows.",
        "Each epoch costs jobs, files in the checkpoint, and a write to the sink.",
        "latestOffset: offsets that change by themselves, such as times",
    ),
    Rule(
        "F10",
        MUST,
        "A task that fails, and a driver that is killed in the middle of an epoch, lose and double"
        " nothing.",
        "The retry, and the next process, read the same range again.",
        "read(): rows that are marked, acknowledged or deleted when they are read; what a process"
        " remembers",
    ),
    Rule(
        "F11",
        MUST,
        "A query that is stopped in the middle of an epoch, or while it waits, ends soon, and loses"
        " and doubles nothing when it goes on.",
        "Deployments stop queries; one that does not end is killed, and a planned range is read"
        " again.",
        "calls that wait for rows; what partitions() leaves behind",
    ),
    Rule(
        "F12",
        MAY,
        "A query's progress tells how far the store goes: latestOffset is there, and moves with"
        " the rows.",
        "Without it nobody sees that a query falls behind.",
        "reportLatestOffset",
    ),
    Rule(
        "F13",
        MUST,
        "A store that lacks the newest rows which were read, as after a failover, gives no row"
        " twice and passes over none that came since: the query goes on, or fails, and goes on"
        " behind what it has read where that is tolerated.",
        "Replicas and backups lag: a source that takes the store for a new one reads all of it"
        " again.",
        "an end that lies before the offset; what stands for the beginning",
    ),
    Rule(
        "F14",
        MUST,
        "What is left out for a time goes on where it was when the query takes it in again.",
        "A topic, a stream or an index is left out while it is mended: to forget its place is to"
        " read it from its beginning, or from its end.",
        "offsets that hold only what is followed at the moment",
    ),
)
