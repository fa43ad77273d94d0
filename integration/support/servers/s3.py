"""An S3 server for tests (moto), and the settings for Spark's checkpoints in it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from integration.support.servers.cache import jars
from integration.support.servers.finder import UnavailableError, first_that_works
from integration.support.servers.process import HOST, ServerProcess

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

BUCKET, REGION = "checkpoints", "eu-central-1"
ACCESS, SECRET = "AKIASPARKONCETESTS", "wJalrXUtnFEMI-tests-only"

HADOOP = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
)
SDK = "2.35.4"
PARTS = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
"""The parts of the AWS SDK that Hadoop's s3a uses, instead of the bundle of 600 MB."""


def s3a_jars() -> list[Path]:
    """The jars of `spark.jars` for `s3a://`, besides the Hadoop of PySpark 4.3."""
    return first_that_works("s3a", {"maven": _jars})


def moto() -> S3Process:
    """A server that has not started yet."""
    return first_that_works("s3", {"moto": S3Process})


def _jars() -> list[Path]:
    sdk = jars(*(f"software.amazon.awssdk:{part}:{SDK}" for part in PARTS))
    return [*jars(*HADOOP, whole=False), *sdk]


class S3Process(ServerProcess):
    """A private server with one bucket. It keeps objects in memory until it ends."""

    start_seconds = 60.0

    def __init__(self) -> None:
        super().__init__()
        self._program = shutil.which("moto_server", path=str(Path(sys.executable).parent))
        if self._program is None:
            raise UnavailableError("no moto_server", "pip install 'moto[server]'")

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def command(self) -> list[str]:
        return [str(self._program), "-H", HOST, "-p", str(self.port)]

    def files(self) -> FileSystem:
        """The server as a file system, with its bucket."""
        from pyarrow.fs import S3FileSystem

        files = S3FileSystem(
            access_key=ACCESS,
            secret_key=SECRET,
            region=REGION,
            endpoint_override=self.url,
            allow_bucket_creation=True,
        )
        files.create_dir(BUCKET)
        return files

    def settings(self) -> dict[str, str]:
        """The settings of a Spark session for the server."""
        s3a = "spark.hadoop.fs.s3a"
        return {
            f"{s3a}.endpoint": self.url,
            f"{s3a}.endpoint.region": REGION,
            f"{s3a}.access.key": ACCESS,
            f"{s3a}.secret.key": SECRET,
            f"{s3a}.path.style.access": "true",
            f"{s3a}.connection.ssl.enabled": "false",
        }
