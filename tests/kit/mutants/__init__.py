"""Broken sinks, each with one fault. `tests/kit/test_mutants.py` sees that the kit finds them."""

from tests.kit.mutants.abort_mutants import ABORT_MUTANTS
from tests.kit.mutants.batch_mutants import BATCH_MUTANTS
from tests.kit.mutants.commit_mutants import COMMIT_MUTANTS
from tests.kit.mutants.core_mutants import CORE_MUTANTS
from tests.kit.mutants.effect_mutants import EFFECT_MUTANTS
from tests.kit.mutants.late_mutants import LATE_MUTANTS
from tests.kit.mutants.log_mutants import LOG_MUTANTS
from tests.kit.mutants.mutant import Mutant
from tests.kit.mutants.owner_mutants import OWNER_MUTANTS
from tests.kit.mutants.record_mutants import RECORD_MUTANTS
from tests.kit.mutants.row_mutants import ROW_MUTANTS
from tests.kit.mutants.volume_mutants import VOLUME_MUTANTS

MUTANTS = [
    *RECORD_MUTANTS,
    *LOG_MUTANTS,
    *EFFECT_MUTANTS,
    *ROW_MUTANTS,
    *COMMIT_MUTANTS,
    *ABORT_MUTANTS,
    *CORE_MUTANTS,
    *OWNER_MUTANTS,
    *BATCH_MUTANTS,
    *VOLUME_MUTANTS,
    *LATE_MUTANTS,
]

__all__ = ["MUTANTS", "Mutant"]
