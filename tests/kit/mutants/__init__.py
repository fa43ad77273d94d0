"""Broken sinks, each with one fault. `tests/kit/test_mutants.py` sees that the kit finds them."""

from tests.kit.mutants import of_commits, of_effects, of_guards, of_logs  # noqa: F401
from tests.kit.mutants.mutant import MUTANTS, Mutant

__all__ = ["MUTANTS", "Mutant"]
