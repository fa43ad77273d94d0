"""Broken sinks, each with one fault. `tests/test_mutants.py` sees that the kit finds them."""

from tests.mutants.abort_mutants import ABORT_MUTANTS
from tests.mutants.batch_mutants import BATCH_MUTANTS
from tests.mutants.commit_mutants import COMMIT_MUTANTS
from tests.mutants.core_mutants import CORE_MUTANTS
from tests.mutants.effect_mutants import EFFECT_MUTANTS
from tests.mutants.late_mutants import LATE_MUTANTS
from tests.mutants.log_mutants import LOG_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.record_mutants import RECORD_MUTANTS
from tests.mutants.row_mutants import ROW_MUTANTS
from tests.mutants.volume_mutants import VOLUME_MUTANTS

MUTANTS = [
    *RECORD_MUTANTS,
    *LOG_MUTANTS,
    *EFFECT_MUTANTS,
    *ROW_MUTANTS,
    *COMMIT_MUTANTS,
    *ABORT_MUTANTS,
    *CORE_MUTANTS,
    *BATCH_MUTANTS,
    *VOLUME_MUTANTS,
    *LATE_MUTANTS,
]

__all__ = ["MUTANTS", "Mutant"]
