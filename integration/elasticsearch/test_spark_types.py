"""Every Spark type: what Spark writes is found in the document in its documented form."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from elasticsearch import Elasticsearch
from integration.support.runs import Job
from pyspark.sql import SparkSession

# SQL of two values, and their forms in the documents.
FORMS: dict[str, tuple[tuple[str, str], tuple[Any, Any]]] = {
    "boolean": (("true", "false"), (True, False)),
    "byte": (("cast(-128 as tinyint)", "cast(127 as tinyint)"), (-128, 127)),
    "short": (("cast(-32768 as smallint)", "cast(32767 as smallint)"), (-32768, 32767)),
    "int": (("int(-2147483648)", "2147483647"), (-(2**31), 2**31 - 1)),
    "long": (
        ("bigint(-9223372036854775808)", "9223372036854775807"),
        (-(2**63), 2**63 - 1),
    ),
    "float": (
        ("cast(0.1 as float)", "cast(-3.4028235e38 as float)"),
        (Decimal("0.1"), Decimal("-3.4028235e38")),
    ),
    "double": (
        ("double(0.1) + double(0.2)", "5e-324d"),
        (Decimal("0.30000000000000004"), Decimal("5e-324")),
    ),
    "decimal": (
        (
            "cast('-12345678901234567890.000000000000000001' as decimal(38,18))",
            "cast('12.34' as decimal(38,18))",
        ),
        ("-12345678901234567890.000000000000000001", "12.340000000000000000"),
    ),
    "string": (
        ("'naïve \U0001f600 \"quoted\" \\\\ \\n'", "''"),
        ('naïve \U0001f600 "quoted" \\ \n', ""),
    ),
    "binary": (("X'0001FEFF'", "X''"), ("AAH+/w==", "")),
    "date": (("date'0001-01-01'", "date'9999-12-31'"), ("0001-01-01", "9999-12-31")),
    "timestamp": (
        (
            "timestamp'2013-01-01 00:00:00.123456 America/New_York'",
            "timestamp'1969-12-31 23:59:59.999999 UTC'",
        ),
        ("2013-01-01T05:00:00.123456Z", "1969-12-31T23:59:59.999999Z"),
    ),
    "timestamp_ntz": (
        ("timestamp_ntz'1969-12-31 23:59:59.999999'", "timestamp_ntz'2013-01-01 00:00:00'"),
        ("1969-12-31T23:59:59.999999", "2013-01-01T00:00:00.000000"),
    ),
    "interval": (
        ("interval '1 02:03:04.5' day to second", "interval '-0 00:00:00.000001' day to second"),
        (93_784_500_000, -1),
    ),
    "array": (("array(1, null, 3)", "cast(array() as array<int>)"), ([1, None, 3], [])),
    "map": (
        ("map('a.b', 1.5d, 'c', null)", "cast(map() as map<string, double>)"),
        ({"a.b": Decimal("1.5"), "c": None}, {}),
    ),
    "struct": (
        ("named_struct('x', 1, 'y', 'q\"')", "named_struct('x', cast(null as int), 'y', '')"),
        ({"x": 1, "y": 'q"'}, {"x": None, "y": ""}),
    ),
    "point": (
        ("named_struct('lat', 40.5d, 'lon', -73.25d)", "named_struct('lat', 0d, 'lon', 0d)"),
        ({"lat": Decimal("40.5"), "lon": Decimal("-73.25")}, {"lat": 0, "lon": 0}),
    ),
    "nested": (
        (
            "named_struct('a', array(named_struct('d', 12345678901234567.89, 'b', X'00FF')),"
            " 'm', map('k', date'2013-01-01'), 't', timestamp'2013-01-01 05:00:00 UTC')",
            "named_struct('a', array(cast(null as struct<d: decimal(19,2), b: binary>)),"
            " 'm', cast(null as map<string, date>), 't', cast(null as timestamp))",
        ),
        (
            {
                "a": [{"d": Decimal("12345678901234567.89"), "b": "AP8="}],
                "m": {"k": "2013-01-01"},
                "t": "2013-01-01T05:00:00.000000Z",
            },
            {"a": [None], "m": None, "t": None},
        ),
    ),
}


def expected(number: int) -> dict[str, Any]:
    """The document of a row; that of the third one has nulls alone."""
    forms = {column: (*forms, None)[number] for column, (_, forms) in FORMS.items()}
    return {"id": number, **forms, "void": None}


def test_each_type_of_spark_has_its_documented_form(
    spark: SparkSession, elastic: Elasticsearch, elasticsearch_url: str, index: str, tmp_path: Path
) -> None:
    job = Job(spark, tmp_path / "job", elasticsearch_url, index)
    job.format = "elasticsearch"
    job.options = {"url": job.url, "index": index, "createIndex": "true"}
    columns = [
        f"case id when 0 then {first} when 1 then {second} end as `{column}`"
        for column, ((first, second), _) in FORMS.items()
    ]
    job.transform = lambda rows: rows.selectExpr("id", *columns, "null as void")
    job.put(range(3))
    job.run()
    elastic.indices.refresh(index=index)
    with urlopen(f"{job.url}/{index}/_search?sort=id") as answer:
        hits = json.load(answer, parse_float=Decimal)["hits"]["hits"]
    assert [hit["_source"] for hit in hits] == [expected(number) for number in range(3)]
