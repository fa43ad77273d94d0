"""A jar with a source named `redis`, as one may lie in a cluster's folder of jars."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pyspark

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
