"""The suite for connectors on this core. A third party inherits `StoreContract`::

    class TestMyStore(StoreContract):
        pass

and defines in its conftest.py the fixture ``new_subject``: a function that creates a `Subject`.
"""

from __future__ import annotations

from sparkonce.tck.suites.batches import BatchRules
from sparkonce.tck.suites.beside import BesideRules
from sparkonce.tck.suites.claims import ClaimRules
from sparkonce.tck.suites.cleaning import CleaningRules
from sparkonce.tck.suites.commits import CommitRules
from sparkonce.tck.suites.crashes import CrashRules
from sparkonce.tck.suites.damaged import DamagedRules
from sparkonce.tck.suites.drivers import DriverRules
from sparkonce.tck.suites.identities import IdentityRules
from sparkonce.tck.suites.lines import LineRules
from sparkonce.tck.suites.overtaken import OvertakenRules
from sparkonce.tck.suites.refusals import RefusalRules
from sparkonce.tck.suites.steps import StepRules
from sparkonce.tck.suites.volumes import VolumeRules


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
    OvertakenRules,
    DamagedRules,
):
    """Every rule of the rulebook for a store, its commits and its queries."""
