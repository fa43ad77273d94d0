"""How another file system is reached: settings of the session, options, and no key is shown."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import fsspec
import pytest
from fsspec.spec import AbstractFileSystem
from integration.support.servers.process import HOST, Port
from pyarrow.fs import GcsFileSystem
from tests.answering import served
from tests.scenarios import assert_refused

from sparkonce.exactly_once.driver import Offsets
from sparkonce.options import COMMON, parse
from sparkonce.spark import storage
from sparkonce.spark.checkpoint import Checkpoint
from sparkonce.spark.session import SparkSettings
from sparkonce.spark.storage import Settings, Unreadable, s3_arguments, storage_options

PLACE = "s3a://bucket/orders"
KEY, TOKEN = "wJalrXUtnFEMI", "hunter2hunter2"
LOGIN = {"access_key": "AKIA", "secret_key": KEY, "session_token": TOKEN}


def settings(**more: str) -> Settings:
    conf = {f"spark.hadoop.fs.s3a.{name.replace('_', '.')}": value for name, value in more.items()}
    return Settings.seen_by(conf.get, PLACE)


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.hadoop.fs.s3a.endpoint": "http://s3:9000"},
        {
            "spark.hadoop.fs.s3a.bucket.bucket.endpoint": "http://s3:9000",
            "spark.hadoop.fs.s3a.endpoint": "http://all",
            "spark.hadoop.fs.s3a.bucket.other.endpoint": "http://other",
        },
    ],
)
def test_a_buckets_own_setting_comes_first(conf: Mapping[str, str]) -> None:
    assert dict(Settings.seen_by(conf.get, PLACE).s3a) == {"endpoint": "http://s3:9000"}


@pytest.mark.parametrize("place", [None, "/data/orders", "hdfs://name/orders", "gs://bucket/a"])
def test_keys_travel_only_where_the_checkpoint_lies_in_s3(place: str | None) -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": KEY}
    assert Settings.seen_by(conf.get, place) == Settings()


@pytest.mark.parametrize(
    ("hadoop", "arguments"),
    [
        ({}, {}),
        (LOGIN, LOGIN),
        (
            {"endpoint": "http://s3:9000", "endpoint_region": "eu-west-3"},
            {"endpoint_override": "s3:9000", "scheme": "http", "region": "eu-west-3"},
        ),
        (
            {"endpoint": "s3.lan", "path_style_access": "false"},
            {"endpoint_override": "s3.lan", "force_virtual_addressing": True},
        ),
        (
            {"endpoint": "s3.lan", "connection_ssl_enabled": "false"},
            {"endpoint_override": "s3.lan", "scheme": "http"},
        ),
        ({"endpoint": "s3.amazonaws.com"}, {}),
        ({"endpoint": "https://s3.eu-west-3.amazonaws.com"}, {"region": "eu-west-3"}),
        (
            {"aws_credentials_provider": "x.AnonymousAWSCredentialsProvider", "access_key": "AKIA"},
            {"anonymous": True},
        ),
        ({"aws_credentials_provider": "x.Simple,x.Anonymous"}, {"anonymous": True}),
        (
            {"aws_credentials_provider": "x.Simple,x.Anonymous", "access_key": "AKIA"},
            {"access_key": "AKIA"},
        ),
    ],
)
def test_hadoops_settings_become_arguments_of_pyarrow(
    hadoop: dict[str, str], arguments: dict[str, Any]
) -> None:
    assert s3_arguments(dict(settings(**hadoop).s3a), {}) == arguments


@pytest.mark.parametrize("login", [{"access_key": "B", "secret_key": "b"}, {"role_arn": "arn:x"}])
def test_a_login_in_the_option_replaces_that_of_the_session_as_a_whole(
    login: dict[str, str],
) -> None:
    hadoop = {"access.key": "A", "secret.key": KEY, "session.token": TOKEN, "endpoint": "s3.lan"}
    made = s3_arguments(hadoop, {**login, "region": "eu-west-3"})
    where = {"endpoint_override": "s3.lan"}
    assert made == {**login, **where, "region": "eu-west-3"}


# -- the option


@pytest.mark.parametrize("text", ['{"region": "eu-west-3"}', '  {"region": "eu-west-3"}'])
def test_the_option_is_json_or_a_file_that_holds_it(text: str, tmp_path: Path) -> None:
    file = tmp_path / "storage.json"
    file.write_text(text)
    assert parse(COMMON, {"checkpointStorageOptions": text})["checkpointStorageOptions"] == text
    assert storage_options(text) == storage_options(str(file)) == text
    assert storage_options(None) == ""


def test_json_that_is_no_object_is_refused_without_being_shown() -> None:
    torn = {"checkpointStorageOptions": f'{{"secret_key": "{KEY}"'}
    assert_refused(lambda: parse(COMMON, torn), "a JSON object", KEY)


@pytest.mark.parametrize("text", [f'["{KEY}"]', f"secret_key={KEY}", f'"{KEY}"'])
def test_keys_that_are_taken_for_a_file_are_not_shown(text: str) -> None:
    option = parse(COMMON, {"checkpointStorageOptions": text})["checkpointStorageOptions"]
    assert_refused(lambda: storage_options(option), "checkpointStorageOptions", KEY)


@pytest.mark.parametrize(
    ("held", "why"),
    [(None, "No such file"), (f'["{KEY}"]', "no JSON object"), (f"{KEY}\xff", "not UTF-8 text")],
)
def test_a_file_without_json_is_refused_without_being_shown(
    tmp_path: Path, held: str | None, why: str
) -> None:
    file = tmp_path / "storage.json"
    if held is not None:
        file.write_bytes(held.encode("latin-1"))
    assert_refused(lambda: storage_options(str(file)), why, KEY)


# -- what is shown


def test_no_key_is_in_a_text_of_what_travels_from_a_task_to_the_driver() -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": KEY, "spark.hadoop.fs.s3a.session.token": TOKEN}
    session = pickle.loads(pickle.dumps(SparkSettings().reaching(PLACE, conf.get)))
    assert dict(session.storage.s3a) == {"secret.key": KEY, "session.token": TOKEN}
    shown = repr(session) + repr(Checkpoint(PLACE, session.storage))
    assert KEY not in shown
    assert TOKEN not in shown


def test_no_key_is_in_the_error_of_a_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError(f"signature of {KEY} and {TOKEN} at http://s3:9000")
    monkeypatch.setitem(storage.ARROWS, "s3", Mock(side_effect=error))
    seen = settings(secret_key=KEY, endpoint="http://s3:9000")
    nested = {"client": [{"session_token": TOKEN}], "region": "http"}
    more = Settings(seen.s3a, json.dumps(nested))
    with pytest.raises(Unreadable) as refused:
        storage.read(PLACE, "metadata", more)
    assert str(refused.value) == "OSError: signature of *** and *** at http://s3:9000"
    assert refused.value.__suppress_context__


def asked(endpoint: str) -> bytes | None:
    """What the file `metadata` holds, as an S3 server there says."""
    seen = settings(endpoint=endpoint, access_key="AKIA", secret_key=KEY)
    return storage.read(PLACE, "metadata", seen)


def test_an_object_is_absent_only_where_its_server_says_so() -> None:
    with served(404, {}) as there:
        assert asked(there) is None
    for status in (403, 503):
        with served(status, {}) as there, pytest.raises(Unreadable, match="AWS Error"):
            asked(there)
    with pytest.raises(Unreadable, match="NETWORK_CONNECTION"):
        asked(there)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the emulator
def test_objects_of_google_cloud_storage_are_read() -> None:
    """PyArrow's client speaks to an emulator of it."""
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    port = Port()
    server = emulator.create_server(HOST, port.number, in_memory=True, default_bucket="bucket")
    where = {"endpoint_override": f"{HOST}:{port.number}", "scheme": "http", "anonymous": True}
    given = json.dumps({**where, "retry_time_limit": 1})
    found = Checkpoint("gs://bucket/orders", Settings(given=given))
    server.start()
    try:
        files = GcsFileSystem(**where)
        with files.open_output_stream("bucket/orders/metadata") as file:
            file.write(b'{"id":"a"}')
        assert found.query_id() == "a"
        assert found.offsets(0) is None
    finally:
        server.stop()
        port.release()
    with pytest.raises(Unreadable, match="Could not connect"):
        found.offsets(0)


def test_a_file_that_a_file_system_itself_misses_is_no_absent_file_of_the_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = Mock(side_effect=FileNotFoundError("no credentials.json"))
    monkeypatch.setitem(storage.ARROWS, "gs", missing)
    with pytest.raises(Unreadable, match=r"no credentials\.json"):
        storage.read("gs://bucket/orders", "offsets/0", Settings())


# -- other file systems


def test_fsspec_reads_what_pyarrow_does_not() -> None:
    files = fsspec.filesystem("memory")
    files.pipe_file("/orders/metadata", b'{"id":"a"}')
    try:
        found = Checkpoint("memory://orders")
        assert found.query_id() == "a"
        assert found.offsets(0) is None
        through = Settings(given=json.dumps({"protocol": "memory"}))
        assert Checkpoint("hdfs://orders", through).query_id() == "a"
    finally:
        files.rm("/orders", recursive=True)


class Listing(AbstractFileSystem):  # type: ignore[misc]
    """Looks a file up in the listing of its folder, which it keeps; as several of fsspec's do."""

    protocol = "listing"
    held: Mapping[str, bytes] = {}

    def ls(self, path: str, detail: bool = True, **_: object) -> Any:  # noqa: ARG002
        path = self._strip_protocol(path)
        if self._ls_from_cache(path) is None:
            inside = [name for name in self.held if self._parent(name) == path]
            size = {"size": 1, "type": "file"}
            self.dircache[path] = [{"name": name, **size} for name in inside]
        return self.dircache[path]

    def cat_file(self, path: str, **_: object) -> bytes:
        return self.held[self.info(path)["name"]]

    def invalidate_cache(self, path: str | None = None) -> None:  # noqa: ARG002
        self.dircache.clear()


def test_what_spark_has_written_since_the_last_epoch_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fsspec.register_implementation("listing", Listing, clobber=True)
    for epoch in range(2):
        text = f"v1\n{epoch}".encode()
        monkeypatch.setattr(Listing, "held", {**Listing.held, f"orders/offsets/{epoch}": text})
        assert Checkpoint("listing://orders").offsets(epoch) == Offsets(text)


def test_a_place_that_nothing_reads_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    for place in ("oss://bucket/orders", "dbfs:/orders", "abfs://c@account.dfs.core/orders"):
        with pytest.raises(Unreadable, match="fsspec is not installed"):
            Checkpoint(place).query_id()


def test_the_error_of_a_file_system_is_told_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(storage.ARROWS, "s3", Mock(side_effect=OSError("no such JVM\n" * 9000)))
    assert Checkpoint(PLACE).look("a", 0).trouble == "OSError: no such JVM"


# -- what a user is told, and not told, where another file system fails


def test_a_key_is_hidden_however_a_url_spells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's client signs with the parts of a token in another order."""
    token = "sv=2026&sig=abc%2Bdef&se=2027"
    url = "http://host/c/metadata?se=2027&sig=abc%2Bdef&sv=2026"
    error = OSError(f"GET '{url}' by hunter%2F2%3D")
    monkeypatch.setitem(storage.ARROWS, "abfss", Mock(side_effect=error))
    given = Settings(given=json.dumps({"sas_token": token, "token": "hunter/2="}))
    with pytest.raises(Unreadable) as refused:
        storage.read("abfss://c@account.dfs.core/x", "metadata", given)
    assert str(refused.value) == "OSError: GET 'http://host/c/metadata?***' by ***"


def test_a_server_that_never_answers_does_not_hold_a_commit_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never = Event()
    monkeypatch.setitem(storage.ARROWS, "s3", lambda *_: lambda _: never.wait(60))
    monkeypatch.setattr(storage, "LIMIT", 0.1)
    assert Checkpoint(PLACE).look("a", 0).trouble == "TimeoutError: no reply within 0.1 s"
    never.set()
