"""TLS to a real Redis: the server is verified, and a client certificate is shown."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from integration.support.epochs import DirectQuery
from integration.support.servers.finder import UnavailableError
from integration.support.servers.process import Port
from integration.support.servers.redis import RedisProcess

from pyspark_redis.connector import RedisConnector
from sparkonce import options
from sparkonce.errors import StoreUnreachable
from sparkonce.reading import Scan

pytestmark = pytest.mark.variants

ROWS = pa.schema([("id", pa.int64())])
Secure = tuple[str, Path]


@pytest.fixture
def secure(private_redis: Callable[..., RedisProcess], tmp_path: Path) -> Secure:
    """The address of a server that speaks TLS only, and the folder of the certificates."""
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificates, and there is none")
    for name in ("server", "client"):
        make_certificate(tmp_path, name)
    port = Port()
    port.release()
    try:
        private_redis(
            f"tls-port {port.number}",
            f"tls-cert-file {tmp_path}/server.crt",
            f"tls-key-file {tmp_path}/server.key",
            f"tls-ca-cert-file {tmp_path}/client.crt",
        )
    except UnavailableError as error:
        pytest.skip(f"this redis-server was built without TLS: {error}")
    return f"rediss://127.0.0.1:{port.number}/0", tmp_path


def make_certificate(home: Path, name: str) -> None:
    options = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    subject = ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", home / f"{name}.key", "-out", home / f"{name}.crt"]
    subprocess.run(
        ["openssl", "req", *options.split(), *subject, *files], check=True, capture_output=True
    )


def test_server_is_verified_and_the_client_shows_its_certificate(secure: Secure) -> None:
    url, home = secure
    client = {"tlsCertFile": f"{home}/client.crt", "tlsKeyFile": f"{home}/client.key"}
    query = DirectQuery(ROWS, url=url, key="tls:{id}", tlsCaFile=f"{home}/server.crt", **client)
    assert query.run(0, [{"id": 1}]).totals.rows == 1
    raw = {"url": url, "key": "tls:{id}", "tlsCaFile": f"{home}/server.crt", **client}
    source = RedisConnector().source(options.parse(RedisConnector.reads, raw), Scan(ROWS))
    found = [batch for split in source.splits() for batch in source.read(split)]
    assert [batch.to_pylist() for batch in found] == [[{"id": 1}]]

    stranger = DirectQuery(ROWS, url=url, key="tls:{id}", **client)
    with pytest.raises(StoreUnreachable, match=r"(?i)certificate verify failed"):
        stranger.sink.check()
    silent = DirectQuery(ROWS, url=url, key="tls:{id}", tlsCaFile=f"{home}/server.crt")
    with pytest.raises(StoreUnreachable):
        silent.sink.check()
