"""The kit's rules of sources: sources that break one are found, and honest ones hold all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from demo.java import java_home
from integration.support.marks import slow_cases
from tests.kit import log_source
from tests.kit.source_mutants import MUTANTS

from sparkonce.spark import features
from sparkonce.tck.findings import BROKEN
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check
from sparkonce.tck.spark.source_checks import NO_LIMITS, SOURCE_CHECKS


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    return {"JAVA_HOME": str(java_home(tmp_path_factory.mktemp("java")))}


@pytest.mark.parametrize("rule", slow_cases(*SOURCE_CHECKS))
def test_an_honest_source_keeps_all_rules(
    bench: Bench, env: Mapping[str, str], tmp_path: Path, rule: str
) -> None:
    run_check(bench, rule, log_source.source(tmp_path, env)).insist()


@pytest.mark.skipif(features.limits is None, reason=NO_LIMITS)
@pytest.mark.parametrize("mutant", slow_cases(*MUTANTS))
def test_a_source_that_breaks_a_rule_is_found(
    bench: Bench, env: Mapping[str, str], tmp_path: Path, mutant: str
) -> None:
    rule, words = MUTANTS[mutant]
    finding = run_check(bench, rule, log_source.source(tmp_path, env, mutant))
    assert finding.outcome == BROKEN, finding.said
    assert re.search(words, finding.said)


@pytest.mark.slow
def test_a_source_whose_changed_rows_move_must_say_so(
    bench: Bench, env: Mapping[str, str], tmp_path: Path
) -> None:
    source = log_source.moving(tmp_path, env)
    run_check(bench, "F02", source).insist()
    finding = run_check(bench, "F02", replace(source, newest=False))
    assert (finding.outcome, finding.lost, finding.doubled) == (BROKEN, 5, 0), finding.said
