"""The rules of a streaming source, observed from outside: they apply to any source."""

from __future__ import annotations

from collections.abc import Sequence

from sparkonce.tck.rules.rule import MAY, MUST, Rule

SOURCES: Sequence[Rule] = (
    Rule(
        "F01",
        MUST,
        "The source emits every appended row once, at whatever offsets the epochs end.",
        "This is the purpose of a source.",
        "the ends of ranges: one belongs to a range, the other to the next; splits that overlap"
        " or have holes",
    ),
    Rule(
        "F02",
        MUST,
        "A replayed epoch has the same rows. A row that changed since may be missing where a"
        " later epoch has it, if the source says so.",
        "Each crash between the rows and Spark's record of them replays an epoch. A sink that"
        " skips the epoch by number never gets a row that the first run lacked; a sink that"
        " writes it again keeps the new row.",
        "partitions(start, end): reads that run up to the newest rows, or that remove rows",
    ),
    Rule(
        "F03",
        MUST,
        "A restarted query continues where it stopped: it emits rows appended meanwhile once, and"
        " no row twice.",
        "Queries are down for minutes and for days.",
        "latestOffset: only the offset that Spark passes defines the position of a query, not the"
        " memory of a process, nor what the store knows of a reader",
    ),
    Rule(
        "F04",
        MUST,
        "The start position of a query is fixed once. If the first epoch of a query that starts"
        " at the end fails, its replay has each row appended since the first start, once.",
        "Spark records where epochs end, and asks again where the first one begins: by then the"
        " end has moved, and the rows between are lost.",
        "initialOffset: the source must keep the offset that it returns, for example in the first"
        " epoch's end",
    ),
    Rule(
        "F05",
        MUST,
        "With a limit, no epoch has more rows than the limit, or than the source says. The source"
        " still emits all rows, in the order of their appends if it says so.",
        "After a night without a query the first epoch reads the whole night, and runs out of"
        " memory.",
        "latestOffset: the limit that Spark passes; getDefaultReadLimit",
    ),
    Rule(
        "F06",
        MUST,
        "A query with availableNow reads all rows that existed at its start, and ends while"
        " others append.",
        "Scheduled jobs use this trigger; a query that follows the store never ends.",
        "prepareForTriggerAvailableNow: latestOffset must not pass the end that the store had then",
    ),
    Rule(
        "F07",
        MUST,
        "The query fails if rows vanish before it has read them, or before a replay reads them"
        " again; the rows emitted before are right. If an option tolerates the loss, the query"
        " continues with the remaining rows, each once.",
        "Streams are trimmed, topics expire: a query that is too slow would silently skip rows.",
        "the number of rows that a range should have, and whether its first row still exists",
    ),
    Rule(
        "F08",
        MUST,
        "Offsets are JSON, and another spelling of the same JSON means the same offset. They hold"
        " no pickles, and no paths of the machine.",
        "Spark parses and prints them, people restore them, another machine and release reads"
        " them.",
        "offsets that are compared or read as texts, or by the order of their keys",
    ),
    Rule(
        "F09",
        MUST,
        "Without new rows no epoch runs; after a restart, at most one without rows.",
        "Each epoch costs jobs, files in the checkpoint, and a write to the sink.",
        "latestOffset: offsets that change by themselves, such as times",
    ),
    Rule(
        "F10",
        MUST,
        "A task that fails, and a driver that dies in the middle of an epoch, lose and duplicate"
        " nothing.",
        "The retry, and the next process, read the same range again.",
        "read(): rows that it marks, acknowledges or deletes as it reads them; the memory of a"
        " process",
    ),
    Rule(
        "F11",
        MUST,
        "A query that is stopped in the middle of an epoch, or while it waits, ends soon. It"
        " loses and duplicates nothing when it resumes.",
        "Deployments stop queries. An orchestrator kills one that does not end, and the next run"
        " reads a planned range again.",
        "calls that wait for rows; what partitions() leaves behind",
    ),
    Rule(
        "F12",
        MAY,
        "The progress of a query reports the newest offset of the store: latestOffset is present,"
        " and moves with the rows.",
        "Without it nobody sees that a query falls behind.",
        "reportLatestOffset",
    ),
    Rule(
        "F13",
        MUST,
        "If the store loses the newest rows after a query read them, as in a failover, the source"
        " emits no row twice and skips no newer row. The query continues, or fails. If an option"
        " tolerates the loss, it continues behind the rows that it has read.",
        "Replicas and backups lag: a source that takes the store for a new one reads all of it"
        " again.",
        "an end before the offset; the value that represents the beginning",
    ),
    Rule(
        "F14",
        MUST,
        "If a query leaves a part out for a time and then includes it again, that part continues"
        " where it stopped.",
        "Operators leave a topic, a stream or an index out during a repair. A source that forgets"
        " its position reads it from its beginning, or from its end.",
        "offsets that hold only the parts that the query follows now",
    ),
)
