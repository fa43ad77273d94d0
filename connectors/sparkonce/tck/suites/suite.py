"""The base of every suite: a failing test reports the rule in its name.

``test_c05_...`` checks rule C05. Any error of the test becomes a `RuleBroken` that names the rule,
the observation and the place to look at.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any
from unittest import SkipTest

from sparkonce.tck.rules.rule import Rule, RuleBroken
from sparkonce.tck.rules.rulebook import BY_NUMBER
from sparkonce.tck.simulation.faults import Crash

Check = Callable[..., Any]
_NAME = re.compile(r"test_([a-z]\d\d)_")


def rule_of(name: str) -> Rule | None:
    """The rule that a test of this name checks; None if the name has no number.

    Raises:
        KeyError: no rule has this number.
    """
    found = _NAME.match(name)
    return BY_NUMBER[found[1].upper()] if found else None


class Contract:
    """Turns each failure of a numbered test of its subclasses into a `RuleBroken`.

    A check that needs an ability which a sink lacks raises `unittest.SkipTest` with the reason, and
    pytest reports it as skipped.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, check in list(vars(cls).items()):
            rule = rule_of(name)
            if rule is not None:
                setattr(cls, name, _reporting(rule, check))


def _reporting(rule: Rule, check: Check) -> Check:
    @functools.wraps(check)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            return check(*args, **kwargs)
        except (RuleBroken, SkipTest):
            raise
        except (Exception, Crash) as error:
            seen = str(error) or type(error).__name__
            if not isinstance(error, AssertionError):
                seen = f"{type(error).__name__}: {seen}"
            raise RuleBroken(rule, seen) from error

    return checked
