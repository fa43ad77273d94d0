"""Files of a checkpoint that lies in another file system, read by Python on the driver.

PyArrow reads S3, Google Cloud Storage, Azure and, where libhdfs is, HDFS; fsspec reads all else
for which a user has installed its package.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from textwrap import shorten
from threading import Thread
from typing import Any
from urllib.parse import quote, quote_plus

from sparkonce.errors import OptionError
from sparkonce.option_values import is_object

SAME = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}
"""Schemes by which Hadoop reaches the same places."""

MOUNT = "/dbfs"
"""Where Databricks shows the places of `dbfs:` as local ones."""

VOLUMES = "/Volumes/"
"""Places of Databricks that have this local path also with ``dbfs:`` before them."""


def split_location(location: str) -> tuple[str, str, str]:
    """The scheme, the authority and the path of a place; a plain path has neither of the first."""
    match = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(.*)", location, re.DOTALL)
    if match is None:
        return "", "", location
    return match[1].lower(), match[2] or "", match[3]


def canonical_location(location: str) -> str:
    """The one spelling of a place of another file system; that of a local path as it is.

    As Hadoop reads it: doubled slashes, dots and a slash at the end say nothing.
    """
    scheme, authority, path = split_location(location)
    if not scheme:
        mounted = location.startswith(f"{MOUNT}/")
        return canonical_location(f"dbfs:{location[len(MOUNT) :]}") if mounted else location
    authority = re.sub(":[^@]*@", "@", authority)  # a password says nothing of the place
    named = SAME.get(scheme, scheme)
    slashes = f"//{authority}" if authority or (path.startswith("/") and named != "dbfs") else ""
    plain = posixpath.normpath(re.sub("/+", "/", path)) if path else ""
    if named == "dbfs" and plain.startswith(VOLUMES):
        return plain
    return f"{named}:{slashes}{'' if authority and plain == '/' else plain}"


FLOW = re.compile(r"(.+/_checkpoints(?:/[^/]+){2,})/\d+")
"""A sink's name may have dots, each of which makes a folder."""


def without_refresh(location: str | None) -> str | None:
    """The place that all checkpoints of a flow share; that of any other query as it is.

    A refresh that reads all rows again is so known as a checkpoint that another one replaces.
    """
    flow = FLOW.fullmatch(location or "")
    return flow[1] if flow else location


LIMIT = 30.0
"""Seconds."""


def _in_time(fetch: Callable[[], bytes | None]) -> bytes | None:
    """What a file system gives; TimeoutError if a commit can not wait so long."""
    answer: Future[bytes | None] = Future()

    def run() -> None:
        try:
            answer.set_result(fetch())
        except BaseException as error:  # else it would be waited for until LIMIT, and not told
            answer.set_exception(error)

    # No pool: Python waits for a pool's threads as it ends, and nobody can end this one.
    Thread(target=run, daemon=True).start()
    try:
        return answer.result(LIMIT)
    except FutureTimeoutError:
        # From Python 3.11 on a TimeoutError of the file system itself is of this class, too.
        if answer.done():
            return answer.result()
        raise TimeoutError(f"no answer within {LIMIT:g} s") from None


LONGEST = 400
"""Characters of a file system's error; PyArrow's for a JVM that it can't find has 20,000."""

Read = Callable[[str], bytes]
"""Gives what the file of a path holds; raises FileNotFoundError where there is none."""

CONNECT, ANSWER, TRIES = 2, 5, 3
"""Seconds to wait for a connection and for an answer, and how often, where no setting says else."""

AS_ARGUMENTS = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
S3A = (
    *AS_ARGUMENTS,
    *("endpoint", "path.style.access", "connection.ssl.enabled", "aws.credentials.provider"),
)
"""Of Hadoop's settings ``fs.s3a.*`` those that say how a bucket is reached; some are arguments of
PyArrow's file system by another name."""

LOGIN = {"access_key", "secret_key", "session_token", "anonymous", "role_arn"}
"""What PyArrow calls who asks; parts of two logins are none."""

HADOOP = "spark.hadoop.fs.s3a."
"""How their names begin in the session; tasks see none that begins otherwise than by ``spark``."""

PLAIN = {
    *("region", "endpoint_override", "scheme", "host", "port", "protocol"),
    *("account_name", "blob_storage_authority", "blob_storage_scheme"),
    *("dfs_storage_authority", "dfs_storage_scheme"),
}
"""Names in ``checkpointStorageOptions`` whose values an error may show."""


QUERY = re.compile(r"\?[^\s'\"]+")
"""What stands behind a URL: a signature may, with its parts in another order than was given."""


class Unreadable(Exception):
    """A place can't be read from here, whether anything is there or not; its text says why."""


@dataclass(frozen=True)
class Settings:
    """How to reach the file system of a checkpoint. Keys are among them: its text shows nothing.

    Attributes:
        s3a: Hadoop's settings of the bucket, by their names in `S3A`.
        given: the option ``checkpointStorageOptions``, as JSON.
    """

    s3a: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    given: str = field(default="", repr=False)

    @classmethod
    def seen_by(cls, setting: Callable[[str], str | None], location: str | None) -> Settings:
        """Those of the session, for a checkpoint at this place."""
        scheme, bucket, _ = split_location(canonical_location(location or ""))
        # Keys go from a task to the driver only where they are needed.
        if scheme != "s3":
            return cls()
        starts = [f"{HADOOP}bucket.{bucket}.", HADOOP]
        values = {name: [setting(start + name) for start in starts] for name in S3A}
        found = {name: next(filter(None, them), None) for name, them in values.items()}
        return cls(frozenset((name, value) for name, value in found.items() if value))

    def hiding(self, text: str) -> str:
        """The text without any value that is among the settings and may be a key."""
        secret = [value for name, value in self.s3a if name.endswith((".key", ".token"))]
        secret += _values(json.loads(self.given or "{}"))
        forms = ((value, quote(value, ""), quote_plus(value)) for value in secret)
        spelled = {spelling for each in forms for spelling in each}
        # The longest first: one that is a part of another would leave the rest of that.
        for value in sorted(spelled, key=len, reverse=True):
            text = text.replace(value, "***") if len(value) > 3 else text
        return QUERY.sub("?***", text)


def _values(held: Any) -> list[str]:
    """The values of options, and of those within them, that an error may not show."""
    if isinstance(held, Mapping):
        held = [value for name, value in held.items() if name not in PLAIN]
    if isinstance(held, list):
        return [text for value in held for text in _values(value)]
    return [str(held)]


def storage_options(text: str | None) -> str:
    """The JSON of ``checkpointStorageOptions``, which may lie in a file.

    Raises:
        OptionError: the file can't be read, or holds something else.
    """
    if not text or text.lstrip().startswith("{"):
        return text or ""
    try:
        held, why = Path(text).read_text(encoding="utf-8"), "the file holds no JSON object"
    except (OSError, UnicodeDecodeError) as error:
        held, why = "", getattr(error, "strerror", None) or "the file is no text in UTF-8"
    if is_object(held):
        return held
    raise OptionError(  # without what was given, which may be keys in another form
        "The file that option checkpointStorageOptions names can't be read",
        why=why,
        todo="put a JSON object into that file, on the driver, readable by Spark's user",
    )


def read(location: str, name: str, settings: Settings) -> bytes | None:
    """What a file of a checkpoint holds; None if it is not there.

    Raises:
        Unreadable: nobody can tell.
    """
    scheme, authority, path = split_location(canonical_location(location))

    def fetched() -> bytes | None:
        fetch = _reader(scheme, authority, settings)  # it may miss a file of its own, of keys
        try:
            return fetch(f"{path}/{name}")
        except FileNotFoundError:
            return None

    try:
        return _in_time(fetched)
    except Exception as error:  # whatever a file system raises, the file was not read
        first = (str(error).splitlines() or [""])[0]
        said = settings.hiding(f"{type(error).__name__}: {first}")
        raise Unreadable(shorten(said, LONGEST, placeholder="...")) from None


@lru_cache(maxsize=16)
def _reader(scheme: str, authority: str, settings: Settings) -> Read:
    """A reader of one file system, with its connections; a process keeps it for later epochs."""
    more = json.loads(settings.given) if settings.given else {}
    protocol = more.pop("protocol", None)
    if protocol is None and scheme in ARROWS:
        try:
            return ARROWS[scheme](authority, dict(settings.s3a), more)
        except ImportError:  # this PyArrow was built without it
            protocol = scheme
    return _fsspec(protocol or scheme, authority, more)


def _s3(bucket: str, s3a: Mapping[str, str], more: Mapping[str, Any]) -> Read:
    from pyarrow import fs

    ours = {
        "connect_timeout": CONNECT,
        "request_timeout": ANSWER,
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=TRIES),
        **s3_arguments(s3a, more),
    }
    by_environment = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not {"region", "endpoint_override"} & set(ours) and not by_environment:
        ours["region"] = fs.resolve_s3_region(bucket)
    return _arrow(fs.S3FileSystem(**ours), bucket)


def s3_arguments(s3a: Mapping[str, str], more: Mapping[str, Any]) -> dict[str, Any]:
    """What PyArrow's S3FileSystem is given.

    `more` comes before Hadoop's settings; a login as a whole.
    """
    made = _hadoops(s3a)
    if LOGIN & set(more):
        made = {name: value for name, value in made.items() if name not in LOGIN}
    return {**made, **more}


def _hadoops(s3a: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {AS_ARGUMENTS[one]: s3a[one] for one in AS_ARGUMENTS if one in s3a}
    # Hadoop asks its providers in turn: an anonymous one behind others counts where no key is.
    first, _, others = s3a.get("aws.credentials.provider", "").partition(",")
    if "Anonymous" in first or ("Anonymous" in others and "access.key" not in s3a):
        made = {"anonymous": True, **({"region": made["region"]} if "region" in made else {})}
    scheme, _, host = s3a.get("endpoint", "").rpartition("://")
    if s3a.get("connection.ssl.enabled", "").lower() == "false" or scheme == "http":
        made["scheme"] = "http"
    of_aws = re.fullmatch(r"s3(?:[.-]([a-z]+-[a-z-]+-\d))?\.amazonaws\.com/?", host)
    if of_aws:
        made |= {"region": of_aws[1]} if of_aws[1] and "region" not in made else {}
    elif host:
        made["endpoint_override"] = host.rstrip("/")
        if s3a.get("path.style.access", "").lower() == "false":
            made["force_virtual_addressing"] = True  # PyArrow 15 does not know the word
    return made


def _gcs(bucket: str, _: Mapping[str, str], more: Mapping[str, Any]) -> Read:
    from datetime import timedelta

    from pyarrow.fs import GcsFileSystem

    limit = timedelta(seconds=more.get("retry_time_limit", ANSWER))
    return _arrow(GcsFileSystem(**{**more, "retry_time_limit": limit}), bucket)


def _azure(authority: str, _: Mapping[str, str], more: Mapping[str, Any]) -> Read:
    """With a key: where PyArrow (seen with 26) can't get a token, it ends the whole process."""
    if not {"account_key", "sas_token"} & set(more):
        return _fsspec("abfss", authority, more)
    from pyarrow.fs import AzureFileSystem

    container, _at, host = authority.partition("@")
    return _arrow(AzureFileSystem(**{"account_name": host.partition(".")[0], **more}), container)


def _hdfs(authority: str, _: Mapping[str, str], more: Mapping[str, Any]) -> Read:
    from pyarrow.fs import HadoopFileSystem

    host, _colon, port = authority.partition(":")
    where = {"host": host or "default", "port": int(port or 0)}
    return _arrow(HadoopFileSystem(**{**where, **more}), "")


ARROWS = {"s3": _s3, "gs": _gcs, "abfss": _azure, "hdfs": _hdfs}


def _arrow(files: Any, root: str) -> Read:
    def read(path: str) -> bytes:
        with files.open_input_stream(f"{root}{path}") as file:
            return bytes(file.read())

    return read


def _fsspec(protocol: str, authority: str, more: Mapping[str, Any]) -> Read:
    try:
        import fsspec
    except ImportError:
        raise LookupError(
            f"PyArrow does not read {protocol}: with these options, and fsspec is not installed"
        ) from None
    files = fsspec.filesystem(protocol, **more)

    def read(path: str) -> bytes:
        files.invalidate_cache()  # some keep a folder's listing, and would miss what is new there
        return bytes(files.cat_file(f"{protocol}://{authority}{path}"))

    return read
