"""Mutants of docs/model: TLC finds each in the scope that is named."""

from __future__ import annotations

from tools.model.commit_mutants import COMMIT_MUTANTS
from tools.model.owner_mutants import OWNER_MUTANTS
from tools.model.store_mutants import STORE_MUTANTS

PLANTED = {**STORE_MUTANTS, **COMMIT_MUTANTS, **OWNER_MUTANTS}
"""By the names that the kit has for them."""
