"""Through Spark Connect, by a name that a jar of the server has taken and by one that nobody has.

All queries run on one server, and each test is a client with a session of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyspark
import pytest
from integration.support.environments import Environment
from integration.support.runs import Job, once
from integration.support.servers.process import wait_until
from integration.support.servers.spark import ConnectServer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import sparkonce

pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
PROGRAM = Path(__file__).with_name("counting_program.py")


JAVAC = shutil.which("javac")
SERVICE = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
SAYS = "this is the redis of a jar"


SOURCE = f"""
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.streaming.OutputMode;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

public class Shadow implements DataSourceRegister, StreamSinkProvider {{
    public String shortName() {{ return "redis"; }}
    public Sink createSink(
            SQLContext c, Map<String, String> o, Seq<String> columns, OutputMode mode) {{
        throw new IllegalStateException("{SAYS}");
    }}
}}
"""


def shadow_jar(home: Path) -> Path:
    """The jar, compiled against Spark's own."""
    (home / "Shadow.java").write_text(SOURCE)
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    subprocess.run([str(JAVAC), "-nowarn", "-cp", str(jars), "Shadow.java"], cwd=home, check=True)
    jar = home / "shadow.jar"
    with zipfile.ZipFile(jar, "w") as packed:
        packed.write(home / "Shadow.class", "Shadow.class")
        packed.writestr(SERVICE, "Shadow\n")
    return jar


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A server with a jar whose source is named `redis`, where one can be compiled."""
    jars = [shadow_jar(tmp_path_factory.mktemp("jar"))] if JAVAC else []
    with ConnectServer(*jars) as server:
        yield server


@pytest.fixture
def session(connect: ConnectServer) -> Iterator[Callable[..., SparkSession]]:
    """Begin a session: `session("user")`."""
    from pyspark.sql.connect.session import SparkSession as Client

    begun: list[SparkSession] = []

    def begin(user: str = "one") -> SparkSession:
        begun.append(Client.builder.remote(f"{connect.url}/;user_id={user}").create())
        return begun[-1]

    yield begin
    for one in begun:
        one.stop()


@pytest.fixture
def make(
    session: Callable[..., SparkSession], redis_url: str, unique: str, tmp_path: Path
) -> Callable[..., Job]:
    """Make a job that counts rows: `make("name of the job", "user")`."""

    def make(name: str = "", user: str = "one") -> Job:
        job = Job(session(user), tmp_path / f"job{name}", redis_url, unique + name)
        job.format = "sparkonce_redis"
        job.options["writeMode"] = "increment"
        return job

    return make


@pytest.mark.slow
def test_each_row_counts_once_and_so_it_does_when_its_epoch_is_replayed(
    make: Callable[..., Job],
) -> None:
    job = make()
    job.put(range(100))
    job.put(range(100, 200))
    job.run()
    job.uncommit(1)
    job.put(range(200, 300))
    job.run()
    assert job.counts() == once(range(300))
    assert job.sink().staged == ()


@pytest.mark.slow
def test_a_killed_server_loses_and_doubles_nothing(
    connect: ConnectServer, session: Callable[..., SparkSession], make: Callable[..., Job]
) -> None:
    job = make()
    for start in range(0, 600, 100):
        job.put(range(start, start + 100))
    job.start()
    wait_until((job.checkpoint / "commits" / "0").exists, 120, "no epoch was committed")
    connect.kill()
    before = sum(job.counts().values())
    connect.start()
    job.spark = session()
    job.run()
    assert before < 600
    assert job.counts() == once(range(600))


@pytest.mark.slow
@pytest.mark.skipif(not JAVAC, reason="no javac on PATH")
def test_a_jars_name_wins_even_over_a_registered_one_and_the_second_name_is_ours(
    make: Callable[..., Job],
) -> None:
    job = make()
    job.put(range(100))
    job.format = "redis"
    with pytest.raises(PySparkException, match=SAYS):
        job.start()
    stores = "elasticsearch", "mysql", "redis"
    ours = [*stores, *(f"sparkonce_{store}" for store in stores)]
    assert sorted(sparkonce.register(job.spark)) == ours
    with pytest.raises(PySparkException, match=SAYS):
        job.start()
    job.format = "sparkonce_redis"
    job.run()
    assert job.counts() == once(range(100))


@pytest.mark.slow
def test_many_queries_of_two_users_at_once_count_each_row_once(make: Callable[..., Job]) -> None:
    jobs = [make(f"-{number}", f"user{number % 2}") for number in range(8)]
    for job in jobs:
        job.put(range(100))
        job.put(range(100, 200))
    with ThreadPoolExecutor(len(jobs)) as pool:
        list(pool.map(Job.run, jobs))
    assert [job.counts() for job in jobs] == [once(range(200))] * len(jobs)


@pytest.mark.slow
def test_a_client_needs_nothing_but_pyspark_client(
    connect: ConnectServer, make: Callable[..., Job], tmp_path: Path
) -> None:
    job = make()
    job.put(range(100))
    client = Environment(tmp_path / "client")
    client.install(f"pyspark-client<={pyspark.__version__}")
    where = job.url, job.name, str(job.input), str(job.checkpoint)
    done = subprocess.run(
        [client.python, PROGRAM, *where, connect.url],
        env={},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "has sparkonce: False" in done.stdout, done.stderr
    assert job.counts() == once(range(100))
