"""estimate and probe: the capacities of measured data, and those of a system that can be called."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import checks_arguments, require_boolean, require_type
from ..basis import DiscreteFamily, ProductBasis
from ..designs import WEIGHTED_SHARE, draw, draw_weighted
from ..errors import ParameterError
from ..estimators import DEFAULT_METHOD, Estimator, find_method
from ..recording import Recording, fold_recording
from ..result import CapacityResult
from ..samples import TraceSteps
from ..systems import is_instrument, measure, system_of_instrument
from ..typing import ArrayLike, Floats, System
from ._from_arrays import EstimateOptions, estimate_arrays, estimate_trace
from ._from_recording import estimate_recording
from ._provenance import with_provenance


@checks_arguments
def estimate(
    u: ArrayLike | Recording,
    x: ArrayLike | None = None,
    basis: ProductBasis | None = None,
    *,
    method: str | Estimator = "control-variate",
    method_options: Mapping[str, Any] | None = None,
    constant: bool = True,
    nan_policy: str = "raise",
    complex_as: str | None = None,
    time: ArrayLike | None = None,
    design_index: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    repeats: ArrayLike | None = None,
    washout: int | None = None,
    rows_per_step: int | None = None,
    offset: int = 0,
    mask: ArrayLike | None = None,
    n_components: int | str | None = None,
    memory_limit: str | float | None = None,
    executor: Any = None,
    law: str = "declared",
    input_noise: float | Sequence[float] | None = None,
) -> CapacityResult:
    """Estimate the information processing capacity of a system from measured inputs and readouts.

    Parameters
    ----------
    u, x
        Inputs (samples, inputs) and readouts (samples, channels): NumPy arrays, or anything with
        ``.shape`` and row slices (memmap, h5py, zarr, pandas, xarray, dask), which is read in
        blocks. Of a sequence u may be (samples,); several runs of it are a list of inputs and a
        list of readouts, or arrays (runs, samples, ...). A `Recording` in place of both brings
        everything that belongs to its rows. The result then also tells how the total grew during
        the run, whether the device drifted, and how many factors the readouts have, as far as the
        recording holds what these need.
    basis
        The functions whose capacities are estimated, from `product_basis`, or from `delayed_basis`
        for a device with memory: then rows are time steps, in order. Without a basis that of the
        recording's plan is taken, or the highest degree that leaves two samples for each function;
        a note among the checks says which.
    method
        A name from `infocap.estimators.METHODS`, or your own function of `Evidence` that gives
        (terms,) capacities or an `Estimate`.
    method_options
        Options of the method by name, such as ``{"bound": "data"}``.
    constant
        Append the constant readout once (the paper's convention); a constant channel that is
        already there takes its place.
    nan_policy
        ``"raise"``, or ``"omit"`` to leave out rows with missing values.
    complex_as
        ``"abs2"`` or ``"split"`` for complex readouts: their powers, or real and imaginary parts.
    time
        When each row was measured (a time or a rank), if not in the order of the rows; drift and
        shifts are looked for in that order.
    design_index
        The number of each row in its design: rows of a Sobol design must come in its order.
    sample_weight
        The weights of inputs that were not drawn from the distribution of the basis: its density
        over theirs, as from `draw_weighted`.
    repeats
        The readouts measured a second time at the same inputs, in the shape of x, with NaN in the
        rows that were not repeated. They tell the total that noise allows over a complete basis
        (`dimension.from_repeats`), and so how much lies outside this basis.
    washout
        Time steps at the beginning of every run of a sequence whose readouts are not used, because
        the device still remembers the state that it started from; the largest delay by default, and
        never less.
    rows_per_step, offset, mask
        Of a time-multiplexed trace, in which each input is held while virtual nodes are read out
        one after the other: for how many rows, the rows before the first step, and the factors by
        which recorded inputs were multiplied within each step. See `fold_trace`.
    n_components
        For more channels than samples, such as spectra or images: the capacities of so many
        principal components of the channels, found without the inputs. ``"auto"`` takes one for 30
        samples, and at least 5. All channels together hold at least the total (`Components`, and
        docs/howto/spectra.md). With `repeats` the components are the directions of most signal over
        noise. Channels are taken in their own units.
    memory_limit
        How much memory the work may use (what is in memory already is not counted): ``"1GB"``,
        ``"512MiB"`` or bytes. What lies on disk is then read in blocks that fit; a job that cannot
        fit is refused. With processes or a cluster as `executor` the limit holds for each worker.
    executor
        Who goes through the data: a `concurrent.futures.Executor` or a `dask.distributed.Client`;
        this process's threads by default. Files travel as their names, so all workers must see
        them. See docs/cluster.md.
    law
        ``"declared"``: inputs are independent and follow the distribution of the basis. With
        ``"recorded"`` the capacities are those under the law that the recorded inputs really had,
        which may depend on each other in any way. The basis then gives degrees and delays only. See
        docs/recorded-law.md.
    input_noise
        With the recorded law, the standard deviation of the noise in the recorded inputs, one
        number or one for each; rounding to their smallest step by default. Functions that only
        this noise tells apart have no capacity.

    Returns
    -------
    CapacityResult
        Capacities of all functions, their total, error bars and checks.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> u = infocap.draw(basis, 1024, seed=1)
    >>> system = infocap.theory.random_mixture(basis, n_active=6, n_readouts=5, seed=1)
    >>> result = infocap.estimate(u, system(u), basis)
    >>> print(f"{result.total:.1f} of {result.maximum}, exactly {system.exact().sum():.1f}")
    6.0 of 6, exactly 6.0
    """
    options = EstimateOptions(
        method=method,
        method_options=method_options,
        constant=constant,
        nan_policy=nan_policy,
        complex_as=complex_as,
        time=time,
        design_index=design_index,
        sample_weight=sample_weight,
        repeats=repeats,
        washout=washout,
        n_components=n_components,
        memory_limit=memory_limit,
        executor=executor,
        law=law,
        input_noise=input_noise,
    )
    steps = TraceSteps.wanted(rows_per_step, offset, mask)
    if isinstance(u, Recording):
        if x is not None:
            raise ParameterError(
                "a Recording holds its readouts already; pass the basis as a keyword, "
                "estimate(recording, basis=basis)."
            )
        recording = u if steps is None else fold_recording(u, steps)
        return estimate_recording(recording, basis, options)
    if x is None:
        raise ParameterError(
            "`x=None`: give inputs and readouts, estimate(u, x, basis), or one Recording."
        )
    if steps is not None:
        return estimate_trace(u, x, basis, options, steps)
    return estimate_arrays(u, x, basis, options)


@checks_arguments
def probe(
    system: System,
    basis: ProductBasis,
    n_samples: int,
    *,
    seed: int | None = None,
    design: str | None = None,
    blocks: int | None = None,
    weighted: bool | None = None,
    method: str | Estimator = "control-variate",
    method_options: Mapping[str, Any] | None = None,
    constant: bool = True,
    complex_as: str | None = None,
    washout: int | None = None,
    n_components: int | str | None = None,
    memory_limit: str | float | None = None,
    executor: Any = None,
    law: str = "declared",
    input_noise: float | Sequence[float] | None = None,
) -> CapacityResult:
    """Estimate the capacities of a system that can be called: draw inputs, measure, estimate.

    Parameters
    ----------
    system
        A function that takes inputs (samples, inputs) and gives readouts (samples, channels). A
        system that takes a ``seed``, too, gets one derived from `seed`, so that its noise is
        reproducible. Or an instrument, an object with ``measure(u)`` that takes the inputs of one
        sample, or of a whole sequence, and gives its readouts.
    basis
        The functions whose capacities are estimated. With a basis of delayed inputs, from
        `delayed_basis`, the samples are the steps of one sequence.
    n_samples
        How many inputs to draw.
    seed
        The seed of the inputs and of the noise; a different one each time by default.
    design, blocks
        Those of `draw`: ``"sobol"`` in 8 independent blocks, or fewer for few samples, by default.
    weighted
        Draw as `draw_weighted` does, with weights: three tenths of the inputs follow the functions,
        which are large at the edge, and the others their own distribution. This makes most errors
        smaller (docs/howto/inputs.md), and is the default for continuous inputs and the default
        method. With False all inputs follow their distribution.
    method, method_options, constant, complex_as, washout, n_components, memory_limit, executor
        Those of `estimate`.
    law, input_noise
        Those of `estimate`. Under the recorded law inputs are not drawn with weights.

    Returns
    -------
    CapacityResult
        Capacities of all functions, their total, error bars and checks.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> infocap.probe(lambda u: u, basis, 256, seed=1)
    CapacityResult: total 3.00000 ± <0.00001 of at most 3 (2 readouts and the constant)
      256 samples, 10 legendre functions of 2 inputs, method 'control-variate'
      degree  0  1.00000
      degree  1  2.00000
    """
    measured = measure_at_drawn_inputs(
        system,
        basis,
        n_samples,
        seed=seed,
        design=design,
        blocks=blocks,
        weighted=weighted,
        method=method,
        law=law,
    )
    return measured.estimate(
        basis,
        method=method,
        method_options=method_options,
        constant=constant,
        complex_as=complex_as,
        washout=washout,
        n_components=n_components,
        memory_limit=memory_limit,
        executor=executor,
        law=law,
        input_noise=input_noise,
    )


@dataclass(frozen=True, eq=False)
class MeasuredSystem:
    """Inputs that were drawn for a system, and its readouts at these."""

    u: Floats
    x: Any
    sample_weight: Floats | None
    provenance: dict[str, Any]

    def estimate(self, basis: ProductBasis, **options: Any) -> CapacityResult:
        """Return the capacities, with options of `estimate`."""
        result = estimate(self.u, self.x, basis, sample_weight=self.sample_weight, **options)
        return with_provenance(result, **self.provenance)


def measure_at_drawn_inputs(
    system: System,
    basis: ProductBasis,
    n_samples: int,
    *,
    seed: int | None,
    design: str | None,
    blocks: int | None,
    weighted: bool | None,
    method: str | Estimator,
    law: str,
) -> MeasuredSystem:
    """Draw inputs and measure a system there: the first half of `probe`, with its parameters."""
    require_type("basis", basis, ProductBasis, "product_basis(...)")
    draw_options: dict[str, Any] = {"seed": seed, "blocks": blocks}
    if design is not None:
        draw_options["design"] = design
    if weighted is None:
        draws_weighted = law == "declared" and _gains_from_weights(basis, method)
    else:
        draws_weighted = require_boolean("weighted", weighted)
    if draws_weighted:
        u, sample_weight = draw_weighted(basis, n_samples, **draw_options)
    else:
        u = draw(basis, n_samples, **draw_options)
        sample_weight = None

    if is_instrument(system) and not callable(system):
        system = system_of_instrument(system, basis.of_sequences)
    # The noise has random numbers of its own, apart from those of the design.
    noise_seed = None if seed is None else np.random.SeedSequence(seed).spawn(1)[0]
    share = WEIGHTED_SHARE if draws_weighted else 0.0
    return MeasuredSystem(
        u=u,
        x=measure(system, u, noise_seed),
        sample_weight=sample_weight,
        provenance={"seed": seed, "design_name": design, "share": share},
    )


def _gains_from_weights(basis: ProductBasis, method: str | Estimator) -> bool:
    """Return whether inputs are drawn with weights where nobody says.

    Weights make the errors of the default method smaller, and not those of the others
    (docs/howto/inputs.md).
    """
    if basis.of_sequences or find_method(method, {}).name != DEFAULT_METHOD:
        return False
    return any(not isinstance(family, DiscreteFamily) for family in basis.families)
