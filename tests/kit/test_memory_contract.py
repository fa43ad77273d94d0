"""The kit against the reference store, in each of its profiles."""

from __future__ import annotations

import pytest

from sparkonce.tck.memory_subject import PROFILES, MemorySubject
from sparkonce.tck.store_contract import StoreContract
from sparkonce.tck.subject import NewSubject

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture(params=PROFILES)
def new_subject(request: pytest.FixtureRequest) -> NewSubject:
    return lambda: MemorySubject(PROFILES[request.param]())


class TestMemoryStore(StoreContract):
    pass


@pytest.mark.slow
class TestMemoryStoreAtEachPoint(StoreContract):
    """At every crash point and interleaving, whatever the pace of the others."""

    @pytest.fixture(autouse=True)
    def at_each_point(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SPARKONCE_TCK_PACE", "1")
