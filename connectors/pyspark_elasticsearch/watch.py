"""What the target is now, asked before each decision: a name that stays says nothing of that.

An index may be deleted and made anew, or a pipeline get another body, from one epoch to the next.
So one request (and one for ingest pipelines, where there are any) asks for all that the guarantee
rests on, and what is not as it was when it was found to be fit is looked at as a whole once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_elasticsearch import pipelines, preflight, targets
from pyspark_elasticsearch.client import Cluster


class Watch:
    """Looks at the target.

    Args:
        cluster: where.
        new_index: settings and mappings of a target that may be made; None if it may not.
    """

    def __init__(self, cluster: Cluster, new_index: Mapping[str, Any] | None) -> None:
        self.cluster, self.new_index = cluster, new_index
        self._of: Mapping[str, Any] = {}
        self._fit = preflight.NOTHING

    def require_fit(self, detail: Mapping[str, Any]) -> targets.Target | None:
        """See `preflight.require_fit_target`: the target as a query may begin with it."""
        return self._whole(detail, self.new_index)

    def require_still_fit(self, detail: Mapping[str, Any]) -> targets.Target | None:
        """The target as it is now, which was there when the query began.

        Raises:
            SparkonceError: it is not there any more, or not fit any more.
        """
        now = None if detail["parts"] else targets.require_there(self.cluster, detail)
        fit, known = self._fit.target, self._fit.pipelines
        same = detail == self._of and (now and now.sign) == (fit and fit.sign)
        if same and (not known or pipelines.read(self.cluster, known) == known):
            return now
        return self._whole(detail, None)

    @property
    def piped(self) -> bool:
        """Whether rows went through ingest pipelines when the target was last looked at."""
        return bool(self._fit.pipelines)

    def _whole(
        self, detail: Mapping[str, Any], new_index: Mapping[str, Any] | None
    ) -> targets.Target | None:
        self._of, self._fit = {}, preflight.NOTHING
        self._fit = preflight.require_fit_target(self.cluster, detail, new_index)
        self._of = detail
        return self._fit.target
