"""Sums over stretches of neighbouring rows, from which all is estimated under the recorded law."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from operator import add

import numpy as np

from .._arrays import to_numpy
from ..basis import ProductBasis
from ..typing import Integers
from ._evidence import Evidence
from ._fit import ControlSums, control_sums
from ._sequence import MAX_BYTES_OF_STRETCH_SUMS, MEMORY_FRACTION_OF_STRETCH_SUMS


class StretchSums:
    """Sums over the rows of each stretch, which can be gone through several times.

    Where those of all stretches together would take too much memory, the rows are gone through
    again each time.
    """

    def __init__(self, evidence: Evidence, basis: ProductBasis, edges: Integers) -> None:
        self._engine = evidence.engine
        self._samples = replace(evidence.samples, basis=basis)
        self._sum_rows = partial(control_sums, **evidence.whitener)
        self.edges = edges
        max_bytes = MAX_BYTES_OF_STRETCH_SUMS
        if self._engine.memory_limit is not None:
            limit = int(self._engine.memory_limit * MEMORY_FRACTION_OF_STRETCH_SUMS)
            max_bytes = min(max_bytes, limit)
        self._kept: list[ControlSums] | None = None
        if 8 * len(basis) ** 2 * len(edges) < max_bytes:
            folded = self._engine.fold(self._samples, self._sum_rows, edges=edges.tolist())
            self._kept = [_on_host(sums) for sums in folded]
            self.whole = reduce(add, self._kept)
        else:
            self.whole = _on_host(self._engine.fold(self._samples, self._sum_rows))

    def __len__(self) -> int:
        return len(self.edges) - 1

    def __iter__(self) -> Iterator[ControlSums]:
        if self._kept is not None:
            yield from self._kept
            return
        for rows in pairwise(self.edges.tolist()):
            (sums,) = self._engine.fold(self._samples, self._sum_rows, edges=rows)
            yield _on_host(sums)


@dataclass(frozen=True, eq=False)
class OrderedSums:
    """The same sums of some of the functions, in a given order."""

    sums: StretchSums
    functions: Integers

    @property
    def whole(self) -> ControlSums:
        """The sums over all rows."""
        return of_functions(self.sums.whole, self.functions)

    def __len__(self) -> int:
        return len(self.sums)

    def __iter__(self) -> Iterator[ControlSums]:
        for stretch in self.sums:
            yield of_functions(stretch, self.functions)


def of_functions(sums: ControlSums, functions: Integers) -> ControlSums:
    """Return the sums of some functions in a given order."""
    return ControlSums(
        count=sums.count,
        phi_phi=sums.phi_phi[np.ix_(functions, functions)],
        phi_z=sums.phi_z[functions],
        z_z=sums.z_z,
    )


def _on_host(sums: ControlSums) -> ControlSums:
    return ControlSums(
        count=sums.count,
        phi_phi=to_numpy(sums.phi_phi),
        phi_z=to_numpy(sums.phi_z),
        z_z=to_numpy(sums.z_z),
    )
