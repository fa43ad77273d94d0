"""Options: tables, parsing, validation.

Spark lower-cases option names, so the comparison of names ignores case. An unknown name is an
error, which suggests the nearest one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkonce.errors import OptionError
from sparkonce.option_values import (
    Parser,
    boolean,
    choice,
    integer,
    json_object,
    pattern,
    seconds,
    suggestion,
)
from sparkonce.urls import redact_url, spelled

MEANT = {
    option: names.split()
    for option, names in {
        "url": (
            "host hostname hosts port server servers database dbname db connection.url "
            "spark.redis.host spark.redis.port spark.redis.db dbnum es.nodes es.port nodes "
            "ssl es.net.ssl spark.redis.ssl"
        ),
        "user": "username connection.user spark.redis.user es.net.http.auth.user",
        "password": "pass auth connection.password spark.redis.auth es.net.http.auth.pass",
        "apiKey": "es.net.http.header.authorization",
        "tlsCaFile": "es.net.ssl.truststore.location trustcertificatekeystoreurl sslca",
        "dbtable": "table table.include.list table-name tablename table.name.format path",
        "index": "es.resource es.resource.write resource path",
        "key": (
            "key.column primarykey primary_key upsertkey upsertkeys pk.fields mergekey "
            "es.mapping.id idfield table key.prefix"
        ),
        "writeMode": "mode savemode insert.mode es.write.operation operation",
        "createTable": "auto.create createtableoptions createtablecolumntypes",
        "createIndex": "es.index.auto.create",
        "routing": "es.mapping.routing",
        "pipeline": "es.ingest.pipeline",
        "versionColumn": "es.mapping.version version.field",
        "chunkRows": (
            "batchsize batch.size batch_size iterator.grouping.size max.pipeline.size "
            "es.batch.size.entries sink.buffer-flush.max-rows"
        ),
        "timeout": "querytimeout socket_timeout es.http.timeout connecttimeout",
        "maxRetries": (
            "retries sink.max-retries max.retries es.batch.write.retry.count es.http.retries"
        ),
        "startingPosition": (
            "startingoffsets startingtimestamp snapshot.mode scan.startup.mode auto.offset.reset"
        ),
        "maxRowsPerBatch": "maxoffsetspertrigger maxfilespertrigger max.batch.size",
        "streams": "stream.keys stream stream.key",
        "onBadRow": "errors.tolerance es.write.rest.error.handlers",
        "deadLetter": "errors.deadletterqueue.topic.name deadletterqueue",
        "checkpointLocation": "checkpoint checkpoint.location",
    }.items()
}
"""Names in other connectors, by the option here. A name may map to several options, of which a
connector has one."""

NOTHING = {
    **dict.fromkeys(
        ("server-id", "database.server.id"), "each request for the binary log draws a random one"
    ),
    "driver": "the client is a Python package, which the extra installs",
    "isolationlevel": "an epoch is one transaction",
    "fetchsize": "rows are streamed",
    "rewritebatchedstatements": "one statement already sends many rows",
    "truncate": "df.write.mode('overwrite') replaces the rows of a table",
    "numpartitions": "repartition() the query instead",
    "es.batch.size.bytes": "requests keep to the limits of the cluster",
    **dict.fromkeys(
        (f"es.nodes.{one}" for one in ("wan.only", "discovery", "client.only", "data.only")),
        "the client connects to the hosts of url, and to no others",
    ),
    "es.batch.write.refresh": "index.refresh_interval of the index applies",
    **dict.fromkeys(
        ("filter.keys.by.type", "keys.pattern", "infer.schema", "scan.count", "partitions.number"),
        "it is for reading",
    ),
}
"""Options of other connectors that have no counterpart here, and why."""


def known_elsewhere(name: str, known: Collection[str]) -> str:
    """What to use instead of an option of another connector; empty if none of them has it."""
    given = name.casefold()
    for option, names in MEANT.items():
        if option in known and given in names:
            return f"here it is option {option!r}"
    why = NOTHING.get(given)
    return f"leave it out: {why}" if why else ""


@dataclass(frozen=True)
class Option:
    """One option: its name, its meaning, and the parser of its text.

    Attributes:
        parse: raises ValueError, with what it expects, for a text that it cannot parse.
        secret: never shown in a log line, an error or the ledger.
    """

    name: str
    meaning: str
    parse: Parser = str
    default: Any = None
    required: bool = False
    secret: bool = False

    def to_json(self) -> dict[str, Any]:
        """The public attributes as JSON values."""
        plain = isinstance(self.default, bool | int | float | str | None)
        default = self.default if plain else str(self.default)
        about = {"name": self.name, "required": self.required, "default": default}
        return about | {"secret": self.secret, "meaning": self.meaning}


class Options(dict[str, Any]):
    """Parsed options by name, with every default filled in. The repr hides secrets."""

    def __init__(self, values: Mapping[str, Any], secrets: frozenset[str]) -> None:
        super().__init__(values)
        self._secrets = secrets

    def __repr__(self) -> str:
        shown = {
            name: "***" if name in self._secrets else value
            for name, value in self.items()
            if value is not None
        }
        if shown.get("url"):
            shown["url"] = redact_url(str(shown["url"]))
        return repr(shown)


NAME = pattern(r"[A-Za-z0-9._-]{1,100}", "1 to 100 of the characters A-Z a-z 0-9 . _ -")
"""A name of a ledger."""

LOGIN = (
    Option("user", "User name; the URL may hold it instead."),
    Option("password", "Password; the URL may hold it instead.", secret=True),
    Option("passwordFile", "File with the password, on the driver and every executor."),
)
TIMEOUT = Option(
    "timeout",
    "Longest wait for one reply of the store: seconds, or for example `500ms`, `90s`, `15m`.",
    seconds(0.1, 3600),
    30,
)

ADD_COLUMNS = Option(
    "addColumns",
    "Whether to add columns of the query that the target lacks, before the decision of an epoch.",
    boolean,
    False,
)

COMMON = (
    *LOGIN,
    Option(
        "sinkId",
        "Name of the ledger. Default: the query id, which stays the same for one checkpoint.",
        NAME,
    ),
    Option(
        "onNewCheckpoint",
        "What to do when another query wrote to this sink before: `fail`, or"
        " `continue:<its query id>`. Default: an upsert (without `ttl`) continues from another"
        " upsert with the same checkpoint path; all else fails.",
        pattern(r"fail|continue:[A-Za-z0-9._-]{1,100}", "fail or continue:<query id>"),
    ),
    Option(
        "onLostCommit",
        "What to do when the store lacks what it had acknowledged: the value in the error."
        " `continue@<first>-<last>` continues without these epochs. In a Redis Cluster,"
        " `continue@<epoch>` continues without the rows that nodes lost before it. Default: fail.",
        pattern(r"continue@\d+(-\d+)?", "continue@<first>-<last>, for example continue@8-9"),
    ),
    Option("txnAppId", "Of a batch: the application whose writes `txnVersion` numbers.", NAME),
    Option(
        "txnVersion",
        "Of a batch: its number, which only grows. The sink skips a repetition of the last one;"
        " a lower one is an error.",
        integer(0, 2**63 - 1),
    ),
    Option(
        "ownKeys",
        "Whether no other writer writes the keys of this job. If so, sparkonce finishes an old"
        " batch without asking which sinks have written since.",
        boolean,
        False,
    ),
    Option(
        "chunkRows",
        "Most rows in one chunk. Default: depends on the number of columns.",
        integer(1, 1_000_000),
    ),
    TIMEOUT,
    Option(
        "maxRetries",
        "Retries while the store is unreachable, at growing intervals of 0.1 s to 5 s.",
        integer(0, 1000),
        8,
    ),
    Option("checkpointLocation", "Spark's own option; its path guards against a lost checkpoint."),
    Option(
        "checkpointStorageOptions",
        "How Python on the driver reaches the file system of the checkpoint, where"
        " `spark.hadoop.fs.s3a.*` do not suffice. JSON with arguments of PyArrow's file system, or"
        " of fsspec's with its `protocol`; or the path of a file with that JSON. See"
        " docs/checkpoints.md.",
        json_object,
        secret=True,
    ),
    Option(
        "onUnreadableCheckpoint",
        "What to do if Python on the driver cannot read the checkpoint: `fail` or `warn`."
        " Default: an upsert (without `ttl`) warns, all else fails.",
        choice("fail", "warn"),
    ),
)

SPARKS = ("queryname",)
"""Names that Spark itself adds to the options; a sink ignores them."""


def parse(table: Iterable[Option], raw: Mapping[str, str], *, complete: bool = True) -> Options:
    """Parse the options of a user.

    If `complete`, required options must be present; a connection alone does not need them.

    Raises:
        OptionError: names are unknown, values can't be parsed, or required options are missing. The
            error lists all problems.
    """
    options = [*table]
    by_name = {option.name.lower(): option for option in options}
    values: dict[str, Any] = {option.name: option.default for option in options}
    strangers = [name for name in raw if name.lower() not in (*by_name, *SPARKS)]
    problems = [*_unknown(strangers, [*values])]
    for name, text in raw.items():
        if option := by_name.get(name.lower()):
            try:
                values[option.name] = _value(option, text)
            except OptionError as error:
                problems.append(error)
    given = {name.lower() for name in raw} if complete else {*by_name}
    needed = [option for name, option in by_name.items() if option.required and name not in given]
    problems += map(_missing, needed)
    if not problems and values.get("password") and values.get("passwordFile"):
        raise OptionError(
            "Options password and passwordFile contradict each other",
            why="both set the password",
            todo="omit one of them",
        )
    if not problems:
        return Options(values, frozenset(option.name for option in options if option.secret))
    if len(problems) == 1:
        raise problems[0]
    several = OptionError(f"{len(problems)} options are wrong")
    several.problems = problems
    raise several


def password(options: Mapping[str, Any], option: str = "password") -> str | None:
    """The password, from its option or from `File`, the option of its file; None without both.

    Raises:
        OptionError: the file can't be read.
    """
    path = options.get(f"{option}File")
    if not path:
        return options.get(option)
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            f"Option {option}File={path!r} can't be read",
            why=getattr(error, "strerror", None) or "it is not UTF-8 text",
            todo="put the file on the driver and every executor, readable by Spark's user",
        ) from None


def _value(option: Option, text: str) -> Any:
    if not (text or "").strip():  # Spark passes None, too
        raise OptionError(
            f"Option {option.name} is empty",
            why="an unset variable may be the cause, and the query would run without the option",
            todo=f"set a value{'' if option.required else ', or omit the option'}."
            f" Meaning: {option.meaning}",
        )
    text = spelled(text) if option.name == "url" else text
    try:
        return option.parse(text)
    except ValueError as error:
        may_hold = option.name == "url" or "//" in text or (":" in text and "@" in text)
        shown = "" if option.secret else f"={(redact_url(text) if may_hold else text)!r}"
        raise OptionError(
            f"Option {option.name}{shown} can't be read",
            why=f"it must be {error}",
            todo=f"correct it{'' if option.required else ', or omit it'}."
            f" Meaning: {option.meaning}",
        ) from None


def _unknown(strangers: Sequence[str], names: Sequence[str]) -> Iterator[OptionError]:
    """The errors for unknown names; the first one lists the known names."""
    todo = f"use one of these: {', '.join(names)}"
    for name in strangers:
        answer = known_elsewhere(name, names) or suggestion(name, names)
        why = "a misspelled option would have no effect"
        yield OptionError(f"Option {name!r} is unknown", why, answer or todo)
        todo = todo if answer else "use one of those above"


def _missing(option: Option) -> OptionError:
    return OptionError(
        f"Option {option.name} is missing",
        why="it is required, and has no default",
        todo=f'add .option("{option.name}", ...). Meaning: {option.meaning}',
    )
