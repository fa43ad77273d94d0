"""A seeded explorer: drivers, tasks, operators and faults, in an order that a seed decides.

A schedule runs the real core over one profile of the store in memory. Its actors send their
requests one at a time; whose comes next, and what happens to it, are choices drawn from the seed.
Then every late request arrives, a last driver goes on without faults, and the oracles judge. So a
seed alone brings a schedule back, and choices that are set to 0 make it simpler.

What is promised where the store itself loses something is told in `losses`.

::

    python -m sparkonce.tck.explore --seeds 100000
    python -m sparkonce.tck.explore --seed 4711 --profile "atomic chunks"
"""

from sparkonce.tck.explore.explorer import Failure, Report, explore, history

__all__ = ["Failure", "Report", "explore", "history"]
