"""A standalone cluster with two workers: how sparkonce gets to its nodes, and what is said if not.

Driver and workers find this project nowhere but in the environments that these tests make: Spark
gives the driver's PYTHONPATH to all tasks, so it is empty here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pyspark
import pytest
from integration.support.environments import Environment, linked
from integration.support.runs import Job, counts, once
from integration.support.servers.process import wait_until
from integration.support.servers.spark import environment

from sparkonce.tck.spark import setup
from sparkonce.tck.spark.cluster import Cluster

HOME = Path(pyspark.__file__).parent
PROGRAM = Path(__file__).with_name("counting_program.py")
LOCAL_PYTHON = "./environment/bin/python"
"""The Python that `--archives environment.tar.gz#environment` gives to executors."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables by which Spark runs, and no Python of it finds this project."""
    scratch = tmp_path_factory.mktemp("scratch")
    ours = {key: environment(scratch)[key] for key in ("SPARK_LOCAL_IP", "JAVA_HOME")}
    others = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    others.pop("PYTHONPATH", None)
    return {**others, **ours, **setup.environment(scratch), "SPARK_HOME": str(HOME)}


@pytest.fixture(scope="module")
def cluster(bare: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"), bare)
    yield started
    started.close()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with sparkonce."""
    return linked(tmp_path_factory.mktemp("ours"), sparkonce=True)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One without it."""
    return linked(tmp_path_factory.mktemp("theirs"), sparkonce=False)


class Submitted(Job):
    """A job that `spark-submit` runs on a cluster, in a folder of its own."""

    def __init__(self, cluster: Cluster, bare: dict[str, str], url: str, name: str, home: Path):
        super().__init__(None, home, url, name)
        self.cluster, self.bare = cluster, bare
        for start in range(0, 600, 100):
            self.put(range(start, start + 100))

    def submit(self, *how: str, register: bool = False, **env: str) -> subprocess.Popen[str]:
        settings = {**setup.driver(self.home, self.home), "spark.executor.memory": "512m"}
        given = [f"--conf={key}={value}" for key, value in settings.items()]
        where = self.url, self.name, str(self.input), str(self.checkpoint)
        asked = ["register"] if register else []
        submit = [str(HOME / "bin" / "spark-submit"), "--master", self.cluster.url, *given, *how]
        return subprocess.Popen(
            [*submit, str(PROGRAM), *where, *asked],
            env={**self.bare, **env},
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def said(self, *how: str, register: bool = False, **env: str) -> str:
        """All that the driver has said in the end."""
        return self.submit(*how, register=register, **env).communicate(timeout=300)[0]


@pytest.fixture
def job(
    cluster: Cluster, bare: dict[str, str], redis_url: str, unique: str, tmp_path: Path
) -> Submitted:
    return Submitted(cluster, bare, redis_url, unique, tmp_path / "job")


def executors(cluster: Cluster) -> list[psutil.Process]:
    workers = [psutil.Process(session.process.pid) for session in cluster.sessions[1:]]
    found = [child for worker in workers for child in worker.children(recursive=True)]
    return [one for one in found if "CoarseGrained" in str(one.as_dict(["cmdline"]))]


@pytest.mark.slow
def test_nodes_that_have_sparkonce_count_each_row_once_though_an_executor_dies(
    job: Submitted, cluster: Cluster, ours: Path
) -> None:
    driver = job.submit(PYSPARK_PYTHON=str(ours))
    wait_until((job.checkpoint / "commits" / "0").exists, 120, "no epoch was committed")
    running = executors(cluster)
    running[0].kill()
    said, _ = driver.communicate(timeout=300)
    assert driver.returncode == 0, said
    assert len(running) == 2
    assert job.counts() == once(range(600))
    assert job.sink().staged == ()


@pytest.mark.slow
def test_executors_without_sparkonce_say_what_to_install_where(
    job: Submitted, ours: Path, theirs: Path
) -> None:
    """The driver's folder `environment` has it; the archive that executors get has not."""
    (job.home / "environment").symlink_to(ours.parents[1])
    archive = shutil.make_archive(str(job.home / "bare"), "gztar", theirs.parents[1])
    said = job.said("--archives", f"{archive}#environment", PYSPARK_PYTHON=LOCAL_PYTHON)
    assert "The Python of an executor has no package 'sparkonce': " in said, said
    assert "/environment/bin/python on " in said
    assert "What to do: install the wheel of sparkonce " in said
    assert job.rows() == {}


# -- other ways


@pytest.fixture(scope="module")
def packed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], list[str]]:
    """An environment, installed and packed as users do it."""
    home = tmp_path_factory.mktemp("packed")
    made = Environment(home / "venv")
    made.install(f"{wheel}[redis]", "venv-pack", "setuptools<81")
    archive = home / "environment.tar.gz"
    pack = [made.home / "bin" / "venv-pack", "-q", "-p", made.home, "-o", archive]
    subprocess.run(pack, check=True)

    def submit_in(folder: Path) -> list[str]:
        (folder / "environment").mkdir()
        shutil.unpack_archive(archive, folder / "environment", filter="tar")
        return ["--archives", f"{archive}#environment"]

    return submit_in


@pytest.mark.slow
def test_an_archive_of_an_environment_counts_each_row_once(
    job: Submitted, packed: Callable[[Path], list[str]]
) -> None:
    said = job.said(*packed(job.home), PYSPARK_PYTHON=LOCAL_PYTHON)
    assert job.counts() == once(range(600)), said


@pytest.mark.slow
def test_a_python_that_only_spark_pyspark_python_names_serves_registered_formats_alone(
    job: Submitted, ours: Path, theirs: Path
) -> None:
    """Automatic lookup runs the Python of the driver's environment, which lacks sparkonce here."""
    named = f"--conf=spark.pyspark.python={ours}"
    assert "[DATA_SOURCE_NOT_FOUND]" in job.said(named, PYSPARK_PYTHON=str(theirs))
    said = job.said(named, register=True, PYSPARK_PYTHON=str(theirs))
    assert job.counts() == once(range(600)), said


@pytest.mark.slow
def test_a_zip_among_py_files_serves_registered_formats_alone_and_a_wheel_none(
    job: Submitted, wheel: Path, theirs: Path
) -> None:
    """Spark gives a wheel to the driver's program, and to no worker of a data source."""
    zipped = shutil.copy(wheel, job.home / "sparkonce.zip")
    by_zip = "--py-files", str(zipped)
    assert "[DATA_SOURCE_NOT_FOUND]" in job.said(*by_zip, PYSPARK_PYTHON=str(theirs))
    by_wheel = "--py-files", str(wheel)
    said = job.said(*by_wheel, register=True, PYSPARK_PYTHON=str(theirs))
    assert "UnsupportedQuery: Python imported sparkonce from sparkonce-" in said, said
    said = job.said(*by_zip, register=True, PYSPARK_PYTHON=str(theirs))
    assert job.counts() == once(range(600)), said


FLOWS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
dp.create_sink(
    "counters", "redis", {{"url": "{url}", "key": "{name}:{{id}}", "writeMode": "increment"}}
)


def rows(folder):
    return spark.readStream.schema("id bigint, n bigint").json(f"{home}/{{folder}}")


@dp.append_flow(target="counters", name="first")
def first():
    return rows("first")


@dp.append_flow(target="counters", name="second")
def second():
    return rows("second")
"""


class Pipeline:
    """A project of `spark-pipelines`, with two flows into one sink."""

    def __init__(self, home: Path, url: str, name: str) -> None:
        import pyspark

        self.home, self.url, self.name = home, url, name
        self.command = str(Path(pyspark.__file__).parent / "bin" / "spark-pipelines")
        (home / "flows.py").write_text(FLOWS.format(url=url, name=name, home=home))
        spec = f"""
            name: counting
            storage: file://{home}/storage
            libraries: [{{glob: {{include: flows.py}}}}]
            configuration: {{spark.sql.shuffle.partitions: "2"}}
        """
        (home / "spark-pipeline.yml").write_text(textwrap.dedent(spec))

    def put(self, folder: str, ids: range) -> None:
        place = self.home / folder
        place.mkdir(exist_ok=True)
        lines = "".join(json.dumps({"id": i, "n": 1}) + "\n" for i in ids)
        (place / f"{ids.start}.json").write_text(lines)

    def run(self, *arguments: str) -> str:
        """All that a run says."""
        done = subprocess.run(
            [self.command, "run", *arguments],
            cwd=self.home,
            env={**os.environ, **environment(self.home)},
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        return done.stdout + done.stderr

    def counts(self) -> Counter[int]:
        return counts(self.url, self.name)


@pytest.mark.slow
def test_rows_of_a_flow_count_once_and_a_full_refresh_is_refused(
    tmp_path: Path, redis_url: str, unique: str
) -> None:
    pytest.importorskip("pyspark.pipelines", reason="this PySpark has no pipelines")
    pipeline = Pipeline(tmp_path, redis_url, unique)
    pipeline.put("first", range(1000))
    pipeline.put("second", range(1000, 1500))
    assert "Run is COMPLETED" in pipeline.run()
    assert pipeline.counts() == once(range(1500))

    pipeline.put("first", range(1500, 2000))
    assert "Run is COMPLETED" in pipeline.run()
    assert pipeline.counts() == once(range(2000))

    said = pipeline.run("--full-refresh-all")
    assert "fully refreshed the pipeline" in said
    assert "onNewCheckpoint=continue:" in said
    assert pipeline.counts() == once(range(2000))
