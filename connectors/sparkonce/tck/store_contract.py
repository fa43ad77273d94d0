"""The suite for connectors on this core. A third party inherits `StoreContract`::

    class TestMyStore(StoreContract):
        pass

and gives, in its conftest.py, the fixture ``new_subject``: a function that makes a `Subject`.
"""

from __future__ import annotations

from sparkonce.tck.batches import BatchRules
from sparkonce.tck.beside import BesideRules
from sparkonce.tck.claims import ClaimRules
from sparkonce.tck.cleaning import CleaningRules
from sparkonce.tck.commits import CommitRules
from sparkonce.tck.crashes import CrashRules
from sparkonce.tck.drivers import DriverRules
from sparkonce.tck.identities import IdentityRules
from sparkonce.tck.lines import LineRules
from sparkonce.tck.refusals import RefusalRules
from sparkonce.tck.steps import StepRules
from sparkonce.tck.volumes import VolumeRules


class StoreContract(
    StepRules,
    VolumeRules,
    CleaningRules,
    BesideRules,
    CrashRules,
    LineRules,
    CommitRules,
    RefusalRules,
    DriverRules,
    IdentityRules,
    ClaimRules,
    BatchRules,
):
    """Every rule of `sparkonce.tck.rulebook` that binds a store, its commits and its queries."""
