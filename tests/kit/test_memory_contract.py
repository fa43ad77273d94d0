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
