"""Reads files of a checkpoint in a remote file system from Python on the driver.

PyArrow reads S3, Google Cloud Storage, Azure and, with libhdfs, HDFS. fsspec reads all other file
systems for which the user has installed the package.
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
"""Schemes that name the same locations in Hadoop."""

MOUNT = "/dbfs"
"""The local path under which Databricks mounts `dbfs:`."""

VOLUMES = "/Volumes/"
"""Locations of Databricks that keep this local path also with the prefix ``dbfs:``."""


def split_location(location: str) -> tuple[str, str, str]:
    """The scheme, authority and path of a location; a plain path has only the last."""
    match = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(.*)", location, re.DOTALL)
    if match is None:
        return "", "", location
    return match[1].lower(), match[2] or "", match[3]


def canonical_location(location: str) -> str:
    """The canonical spelling of a remote location; a local path is returned unchanged.

    As in Hadoop, double slashes, dots and a trailing slash have no meaning.
    """
    scheme, authority, path = split_location(location)
    if not scheme:
        mounted = location.startswith(f"{MOUNT}/")
        return canonical_location(f"dbfs:{location[len(MOUNT) :]}") if mounted else location
    authority = re.sub(":[^@]*@", "@", authority)  # a password is no part of the location
    named = SAME.get(scheme, scheme)
    slashes = f"//{authority}" if authority or (path.startswith("/") and named != "dbfs") else ""
    plain = posixpath.normpath(re.sub("/+", "/", path)) if path else ""
    if named == "dbfs" and plain.startswith(VOLUMES):
        return plain
    return f"{named}:{slashes}{'' if authority and plain == '/' else plain}"


FLOW = re.compile(r"(.+/_checkpoints(?:/[^/]+){2,})/\d+")
"""The name of a sink may have dots; each of them creates a folder."""


def without_refresh(location: str | None) -> str | None:
    """The location that all checkpoints of a flow share; any other location unchanged.

    So a full refresh counts as a replaced checkpoint.
    """
    flow = FLOW.fullmatch(location or "")
    return flow[1] if flow else location


LIMIT = 30.0
"""Seconds in which a file system must reply."""


def _in_time(fetch: Callable[[], bytes | None]) -> bytes | None:
    """The reply of a file system; TimeoutError if it takes longer than a commit can wait."""
    answer: Future[bytes | None] = Future()

    def run() -> None:
        try:
            answer.set_result(fetch())
        except BaseException as error:  # else the caller would wait until LIMIT, and lose it
            answer.set_exception(error)

    # No pool: at its exit Python waits for a pool's threads, and nobody can stop this one.
    Thread(target=run, daemon=True).start()
    try:
        return answer.result(LIMIT)
    except FutureTimeoutError:
        # Since Python 3.11 a TimeoutError of the file system itself has this class, too.
        if answer.done():
            return answer.result()
        raise TimeoutError(f"no reply within {LIMIT:g} s") from None


LONGEST = 400
"""Most characters of a file system's error; PyArrow's error for a missing JVM has 20,000."""

Read = Callable[[str], bytes]
"""Returns the content of a file; raises FileNotFoundError if it does not exist."""

CONNECT, ANSWER, TRIES = 2, 5, 3
"""Default seconds to wait for a connection and for a reply, and the default number of tries."""

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
"""Those of Hadoop's settings ``fs.s3a.*`` that say how to reach a bucket. Some are arguments of
PyArrow's file system under another name."""

LOGIN = {"access_key", "secret_key", "session_token", "anonymous", "role_arn"}
"""PyArrow's arguments for credentials; parts of two credentials do not combine."""

HADOOP = "spark.hadoop.fs.s3a."
"""The prefix of their names in the session; tasks see only names that begin with ``spark``."""

PLAIN = {
    *("region", "endpoint_override", "scheme", "host", "port", "protocol"),
    *("account_name", "blob_storage_authority", "blob_storage_scheme"),
    *("dfs_storage_authority", "dfs_storage_scheme"),
}
"""Names in ``checkpointStorageOptions`` whose values an error may show."""


QUERY = re.compile(r"\?[^\s'\"]+")
"""The query of a URL; it may hold a signature, in another order of parts than the user gave."""


class Unreadable(Exception):
    """The driver cannot read a location, and does not know whether it exists; the text says why."""


@dataclass(frozen=True)
class Settings:
    """How to reach the file system of a checkpoint. The repr hides all, as some are keys.

    Attributes:
        s3a: Hadoop's settings of the bucket, by their names in `S3A`.
        given: the option ``checkpointStorageOptions``, as JSON.
    """

    s3a: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    given: str = field(default="", repr=False)

    @classmethod
    def seen_by(cls, setting: Callable[[str], str | None], location: str | None) -> Settings:
        """The settings of the session, for a checkpoint at this location."""
        scheme, bucket, _ = split_location(canonical_location(location or ""))
        # A task sends keys to the driver only where the driver needs them.
        if scheme != "s3":
            return cls()
        starts = [f"{HADOOP}bucket.{bucket}.", HADOOP]
        values = {name: [setting(start + name) for start in starts] for name in S3A}
        found = {name: next(filter(None, them), None) for name, them in values.items()}
        return cls(frozenset((name, value) for name, value in found.items() if value))

    def hiding(self, text: str) -> str:
        """The text without any value of the settings that may be a key."""
        secret = [value for name, value in self.s3a if name.endswith((".key", ".token"))]
        secret += _values(json.loads(self.given or "{}"))
        forms = ((value, quote(value, ""), quote_plus(value)) for value in secret)
        spelled = {spelling for each in forms for spelling in each}
        # The longest first: replacing a part of a longer one would leave the rest of that.
        for value in sorted(spelled, key=len, reverse=True):
            text = text.replace(value, "***") if len(value) > 3 else text
        return QUERY.sub("?***", text)


def _values(held: Any) -> list[str]:
    """The values of options, also nested ones, that an error must not show."""
    if isinstance(held, Mapping):
        held = [value for name, value in held.items() if name not in PLAIN]
    if isinstance(held, list):
        return [text for value in held for text in _values(value)]
    return [str(held)]


def storage_options(text: str | None) -> str:
    """The JSON of ``checkpointStorageOptions``, given directly or in a file.

    Raises:
        OptionError: the file can't be read, or holds no JSON object.
    """
    if not text or text.lstrip().startswith("{"):
        return text or ""
    try:
        held, why = Path(text).read_text(encoding="utf-8"), "the file holds no JSON object"
    except (OSError, UnicodeDecodeError) as error:
        held, why = "", getattr(error, "strerror", None) or "the file is not UTF-8 text"
    if is_object(held):
        return held
    raise OptionError(  # without the given text, which may be keys in another form
        "The file that option checkpointStorageOptions names can't be read",
        why=why,
        todo="put a JSON object into that file, on the driver, readable by Spark's user",
    )


def read(location: str, name: str, settings: Settings) -> bytes | None:
    """The content of a file of a checkpoint; None if it does not exist.

    Raises:
        Unreadable: the file system does not say.
    """
    scheme, authority, path = split_location(canonical_location(location))

    def fetched() -> bytes | None:
        fetch = _reader(scheme, authority, settings)  # may itself lack a file, one with keys
        try:
            return fetch(f"{path}/{name}")
        except FileNotFoundError:
            return None

    try:
        return _in_time(fetched)
    except Exception as error:  # after any error of a file system the file is unread
        first = (str(error).splitlines() or [""])[0]
        said = settings.hiding(f"{type(error).__name__}: {first}")
        raise Unreadable(shorten(said, LONGEST, placeholder="...")) from None


@lru_cache(maxsize=16)
def _reader(scheme: str, authority: str, settings: Settings) -> Read:
    """A reader of one file system and its connections; a process keeps it for later epochs."""
    more = json.loads(settings.given) if settings.given else {}
    protocol = more.pop("protocol", None)
    if protocol is None and scheme in ARROWS:
        try:
            return ARROWS[scheme](authority, dict(settings.s3a), more)
        except ImportError:  # this build of PyArrow lacks it
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
    """The arguments of PyArrow's S3FileSystem.

    `more` takes precedence over Hadoop's settings; credentials are replaced as a whole.
    """
    made = _hadoops(s3a)
    if LOGIN & set(more):
        made = {name: value for name, value in made.items() if name not in LOGIN}
    return {**made, **more}


def _hadoops(s3a: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {AS_ARGUMENTS[one]: s3a[one] for one in AS_ARGUMENTS if one in s3a}
    # Hadoop asks its providers in turn: an anonymous one after others counts only without a key.
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
            made["force_virtual_addressing"] = True  # unknown to PyArrow 15
    return made


def _gcs(bucket: str, _: Mapping[str, str], more: Mapping[str, Any]) -> Read:
    from datetime import timedelta

    from pyarrow.fs import GcsFileSystem

    limit = timedelta(seconds=more.get("retry_time_limit", ANSWER))
    return _arrow(GcsFileSystem(**{**more, "retry_time_limit": limit}), bucket)


def _azure(authority: str, _: Mapping[str, str], more: Mapping[str, Any]) -> Read:
    """Only with a key: PyArrow (seen with 26) ends the whole process if it cannot get a token."""
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
        files.invalidate_cache()  # some cache the listing of a folder, and would miss new files
        return bytes(files.cat_file(f"{protocol}://{authority}{path}"))

    return read
