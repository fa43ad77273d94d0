"""The rules that bind what reads a store: `sparkonce.reading.Source`, and Spark above it."""

from __future__ import annotations

from collections.abc import Sequence

from sparkonce.tck.rules.rule import MUST, Rule

READS: Sequence[Rule] = (
    Rule(
        "R01",
        MUST,
        "Every row that is there lies in one split, however many splits there are.",
        "Ranges with holes lose rows, ranges that overlap double them, and null is in no range.",
        "Source.splits: open ends, nulls, borders that come twice, one row, no row",
    ),
    Rule(
        "R02",
        MUST,
        "A split that is read again, by any process, gives the same rows.",
        "Spark runs tasks twice: after a failure, beside a slow one, for a second action.",
        "the split: it must say all that decides which rows it has, and be picklable",
    ),
    Rule(
        "R03",
        MUST,
        "Conditions that are pushed never take away a row that matches them.",
        "Collations, wildcards, zones, roundings and nulls differ between a store and Spark.",
        "how a filter is translated; what can't be asked exactly must be asked more widely",
    ),
    Rule(
        "R04",
        MUST,
        "Columns come in the order in which they are asked for, with those names and types.",
        "Batches are handed on by position: a swapped column of one type is never noticed.",
        "Source.read: the columns of its batches",
    ),
    Rule(
        "R05",
        MUST,
        "Values come back as they were stored: nulls, empty texts, quotes and line ends, the"
        " borders of types, instants in every zone.",
        "A text that looks like null, or a rounded number, is a silent change.",
        "how values come over the wire; the type that `infer` gives",
    ),
    Rule(
        "R06",
        MUST,
        "A value that is none of the type asked for is an error that says so, never another value"
        " and never a null.",
        "Zero dates, overflows and arrays among scalars are in every old table.",
        "Source.read: what is parsed leniently",
    ),
    Rule(
        "R07",
        MUST,
        "A read that breaks off raises, or goes on with the right rows; one that is given up leaves"
        " nothing behind that a later read meets.",
        "A connection that goes back to its pool in mid-answer gives the next reader these rows.",
        "Source.read: what happens where its generator is closed, and where the store goes away",
    ),
    Rule(
        "R08",
        MUST,
        "A row that nobody touches is read once, whatever else is written meanwhile.",
        "Pages that shift under a reader lose a row, or give it twice.",
        "Source.read: a snapshot, a cursor, a point in time; never pages by number",
    ),
    Rule(
        "R09",
        MUST,
        "An answer that takes longer than option `timeout` is an error that names the option, and"
        " the store ends what it was doing.",
        "A statement that nobody waits for goes on, and each retry adds another one.",
        "Source.read: what is sent to the store where its answer is no longer wanted",
    ),
    Rule(
        "R10",
        MUST,
        "What an answer of the store says of itself is never taken from a row, whatever its columns"
        " are called.",
        "A column called sort, or _id, took the place of what pages go on by.",
        "how an answer is taken apart: the parts of a row never lie beside those of a page",
    ),
)
