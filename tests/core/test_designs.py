"""Designs: reproducible, extensible, balanced, and distributed as the basis assumes."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import infocap
from infocap import draw, draw_weighted, product_basis
from infocap.designs import block_count, design_fingerprint, planned_inputs, weights_at
from infocap.errors import DataWarning, ParameterError

BASIS = product_basis("legendre", 3, 4)
DESIGNS = ("sobol", "random", "halton", "lhs")
EVEN = ("sobol", "halton", "lhs")


def correlation(u, v):
    """The largest correlation between a column of one design and a column of the other, row by row."""
    n_columns = u.shape[1]
    between_designs = np.corrcoef(u.T, v.T)[:n_columns, n_columns:]
    return np.abs(between_designs).max()


def weighted_inputs(*arguments, **options):
    u, _ = draw_weighted(*arguments, **options)
    return u


def binary(n_inputs):
    return product_basis([infocap.basis.bernoulli()] * n_inputs, max_degree=2)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_seed_decides_the_points(design):
    first = draw(BASIS, 64, design=design, seed=1)
    assert np.array_equal(first, draw(BASIS, 64, design=design, seed=1))
    assert not np.array_equal(first, draw(BASIS, 64, design=design, seed=2))
    assert first.shape == (64, 3)
    assert np.abs(first).max() <= 1


@pytest.mark.parametrize("design", EVEN)
@pytest.mark.parametrize("function", [draw, weighted_inputs])
def test_further_blocks_leave_the_first_rows_as_they_are(design, function):
    first = function(BASIS, 1024, design=design, seed=1)
    longer = function(BASIS, 2048, design=design, blocks=16, seed=1)
    assert np.array_equal(longer[:1024], first)
    assert np.array_equal(function(BASIS, 384, design=design, blocks=3, seed=1), first[:384])
    assert np.array_equal(function(BASIS, 128, design=design, blocks=1, seed=1), first[:128])
    assert not np.array_equal(longer[1024:], first)


def test_random_points_have_no_blocks():
    u = draw(BASIS, 256, design="random", seed=1)
    assert np.array_equal(u, draw(BASIS, 256, design="random", blocks=3, seed=1))
    assert np.array_equal(u[:100], draw(BASIS, 100, design="random", seed=1))


@pytest.mark.parametrize(
    ("n_samples", "blocks"),
    [(1, 1), (127, 1), (128, 2), (256, 4), (500, 4), (512, 8), (8192, 8), (514, 2)],
)
def test_there_are_eight_blocks_where_each_gets_64_points(n_samples, blocks):
    assert block_count(BASIS, n_samples, "sobol", None) == blocks


@pytest.mark.parametrize(("n_inputs", "blocks"), [(6, 8), (7, 8), (8, 4), (9, 2), (10, 1), (12, 1)])
def test_a_block_is_not_smaller_than_the_number_of_states(n_inputs, blocks):
    n_states = 2**n_inputs
    assert block_count(binary(n_inputs), 1024, "sobol", None) == blocks
    u = draw(binary(n_inputs), 1024, seed=1)
    if n_states <= 1024:  # every block has every state equally often
        for block in np.split(u, blocks):
            state = block @ 2 ** np.arange(n_inputs)
            _, counts = np.unique(state, return_counts=True)
            assert np.array_equal(counts, np.full(n_states, len(block) // n_states))


def test_blocks_smaller_than_the_number_of_states_are_warned_of():
    with pytest.warns(
        DataWarning, match="`blocks=8` makes blocks of 64 points, fewer than the 128 states"
    ):
        draw(binary(7), 512, blocks=8, seed=1)
    many_levels = product_basis([infocap.basis.table(range(100))] * 2, max_degree=2)
    assert len(draw(many_levels, 512, blocks=8, seed=1)) == 512  # no warning: as good as continuous


@pytest.mark.parametrize("blocks", [1, 2, 8, 16])
def test_every_sobol_block_is_balanced(blocks):
    u = draw(BASIS, 1024, seed=5, blocks=blocks)
    for block in np.split(u, blocks):
        size = len(block)
        for column in block.T:  # one point in each of `size` intervals
            interval = np.floor((column + 1) / 2 * size)
            assert np.array_equal(np.sort(interval), np.arange(size))
        octant = (block > 0) @ [1, 2, 4]
        _, counts = np.unique(octant, return_counts=True)
        assert np.array_equal(counts, np.full(8, size // 8))


@pytest.mark.parametrize("blocks", [1, 2, 8])
def test_both_halves_of_every_sobol_block_are_nets_in_random_order(blocks):
    u = draw(BASIS, 1024, seed=5, blocks=blocks)
    for half in np.split(u, 2 * blocks):
        size = len(half)
        for column in half.T:  # one point in each of `size` intervals
            interval = np.floor((column + 1) / 2 * size)
            assert np.array_equal(np.sort(interval), np.arange(size))
        octant = (half > 0) @ [1, 2, 4]
        assert np.array_equal(np.bincount(octant), np.full(8, size // 8))
        # In Sobol order every eight points in a row are in all octants.
        octants_of_eight = [len(set(eight)) for eight in octant.reshape(-1, 8)]
        assert np.mean(octants_of_eight) < 7


@pytest.mark.filterwarnings("ignore::infocap.errors.DataWarning")
def test_algorithm_1_on_one_net_needs_halves_that_are_nets():
    """With halves of any points of the net, it takes off more."""
    basis = product_basis("legendre", 3, 5)
    errors = {"ordered": [], "mixed": []}
    for seed in range(8):
        system = infocap.theory.random_mixture(basis, n_active=25, n_readouts=15, seed=seed)
        u = draw(basis, 1024, blocks=1, seed=seed)
        mixed = np.random.default_rng(seed).permutation(u)
        for name, points in (("ordered", u), ("mixed", mixed)):
            readouts = system(points)
            result = infocap.estimate(points, readouts, basis, method="threshold-richardson")
            errors[name].append(result.total - system.exact().sum())
    difference = np.subtract(errors["ordered"], errors["mixed"])
    standard_error = difference.std(ddof=1) / np.sqrt(len(difference))
    assert difference.mean() > 3 * standard_error
    assert abs(np.mean(errors["ordered"])) < 0.5 * abs(np.mean(errors["mixed"]))


@pytest.mark.parametrize("blocks", [1, 8])
@pytest.mark.parametrize("design", DESIGNS)
def test_rows_of_two_seeds_and_neighbouring_rows_are_unrelated(design, blocks):
    """Scrambled Sobol points in their own order are images of each other.

    Neighbours are then correlated by -0.5 and more.
    """
    u = draw(BASIS, 4096, design=design, seed=1, blocks=blocks)
    v = draw(BASIS, 4096, design=design, seed=2, blocks=blocks)
    limit = 5 / np.sqrt(4096)  # five standard errors
    assert correlation(u, v) < limit
    for lag in (1, 2, 4):
        assert correlation(u[lag:], u[:-lag]) < limit
    # Pairs of inputs of both designs fall equally often into each of 16 x 16 cells (chi squared).
    cell_of_u = np.floor((u[:, 0] + 1) * 8).astype(int)
    cell_of_v = np.floor((v[:, 0] + 1) * 8).astype(int)
    counts = np.bincount(16 * cell_of_u + cell_of_v, minlength=256)
    chi_squared = np.sum((counts - 16) ** 2 / 16)
    assert chi_squared < 255 + 5 * np.sqrt(2 * 255)


def test_the_noise_of_a_system_does_not_repeat_the_random_numbers_of_its_design(monkeypatch):
    """Both have the same seed."""

    def plain_random_points(n_inputs, n_samples, generator):
        return generator.random((n_samples, n_inputs))

    monkeypatch.setitem(infocap.designs.DESIGNS, "sobol", plain_random_points)
    share_in_common = []

    def system(u, seed=None):
        points = np.sort((u + 1) / 2, axis=None)
        noise = np.sort(np.random.default_rng(seed).random(u.size))
        share_in_common.append(np.mean(np.isclose(points, noise)))
        return u

    infocap.probe(system, BASIS, 256, blocks=1, seed=1)
    assert np.mean(share_in_common) < 0.1


def test_sobol_warns_when_blocks_are_not_powers_of_two():
    with pytest.warns(
        DataWarning, match="8 x 125 points are not; `n_samples=1000` can be 512 or 1024"
    ):
        assert len(draw(BASIS, 1000, seed=1)) == 1000
    with pytest.warns(DataWarning, match="`n_samples=1001` can be 512 or 1024"):
        draw(BASIS, 1001, seed=1)
    assert len(draw(BASIS, 768, seed=1, blocks=3)) == 768  # three of 256: no warning


@pytest.mark.parametrize("family", ["legendre", "hermite", "laguerre", "chebyshev", "fourier"])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_weights_are_found_again_from_the_inputs(family, share):
    basis = product_basis([family, infocap.basis.bernoulli()], max_degree=6)
    u, weights = draw_weighted(basis, 2048, seed=3, share=share)
    rows = np.random.default_rng(0).permutation(2048)[:100]
    assert np.array_equal(weights_at(basis, u[rows], share), weights[rows])
    weighted_squares = weights[:, None] * basis(u) ** 2
    standard_error = weighted_squares.std(axis=0) / np.sqrt(2048)
    assert np.all(np.abs(weighted_squares.mean(axis=0) - 1) < 5 * standard_error + 1e-9)


def test_a_share_of_nothing_gives_the_inputs_of_draw():
    u, weights = draw_weighted(BASIS, 256, seed=1, share=0.0)
    np.testing.assert_allclose(u, draw(BASIS, 256, seed=1), atol=1e-12)
    np.testing.assert_allclose(weights, 1.0, atol=1e-12)


@pytest.mark.parametrize("share", [-0.1, 1.1, "half", np.nan])
def test_a_share_is_a_number_from_0_to_1(share):
    with pytest.raises(ParameterError, match=f"share={share!r}"):
        draw_weighted(BASIS, 256, share=share)


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
@pytest.mark.parametrize("design", DESIGNS)
def test_probe_draws_with_weights_by_itself(design):
    basis = product_basis("hermite", 2, 6)
    system = infocap.systems.RandomFeatures(2, 10, gain=0.5, noise=0.01)
    by_itself = infocap.probe(system, basis, 512, seed=1, design=design)
    forced = infocap.probe(system, basis, 512, seed=1, design=design, weighted=True)
    assert by_itself.total == forced.total
    assert by_itself.metadata["provenance"]["share"] == 0.3
    with pytest.warns(DataWarning, match="E\\[y\\^4\\]"):
        plain = infocap.probe(system, basis, 512, seed=1, design=design, weighted=False)
    assert plain.total != forced.total
    assert plain.metadata["provenance"]["share"] == 0.0


@pytest.mark.parametrize(
    ("basis", "options"),
    [
        (product_basis("legendre", 2, 3), {"method": "threshold-richardson"}),
        (product_basis("legendre", 2, 3), {"method": "raw"}),
        (product_basis("bernoulli", 4, 3), {}),
        (infocap.delayed_basis("legendre", max_delay={1: 3}), {}),
    ],
    ids=["Algorithm 1", "raw", "bits", "a sequence"],
)
def test_probe_draws_inputs_as_distributed_where_weights_gain_nothing(basis, options):
    drawn = []

    def system(u):
        drawn.append(u)
        return np.tanh(u) + 0.1 * np.random.default_rng(1).standard_normal(u.shape)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        infocap.probe(system, basis, 1024, seed=1, **options)
    assert np.array_equal(drawn[0], draw(basis, 1024, seed=1))


@pytest.mark.filterwarnings("ignore:the total's error bar rests on")
def test_probe_draws_without_weights_for_a_method_that_takes_none():
    basis = product_basis("hermite", 2, 6)
    system = infocap.systems.RandomFeatures(2, 10, gain=0.5, noise=0.01)
    options = {"method": "surrogate", "method_options": {"n_surrogates": 5}}
    result = infocap.probe(system, basis, 512, seed=1, **options)
    assert not any("more than a tenth" in check for check in result.checks)


def test_points_pass_through_the_quantile_of_each_input():
    mixed = product_basis(["hermite", "laguerre", infocap.basis.bernoulli()], max_degree=2)
    u = draw(mixed, 4096, seed=0)
    assert np.isfinite(u).all()
    assert_allclose(u[:, 0].std(), 1, atol=0.01)
    assert_allclose(u[:, 1].mean(), 1, atol=0.01)
    assert set(np.unique(u[:, 2])) == {0.0, 1.0}


def test_low_discrepancy_integrates_better_than_chance():
    error = {}
    for design in DESIGNS:
        means = [draw(BASIS, 1024, design=design, seed=seed).mean(axis=0) for seed in range(10)]
        error[design] = np.sqrt(np.mean(np.square(means)))
    assert max(error["sobol"], error["halton"], error["lhs"]) < 0.2 * error["random"]


def test_no_point_sits_on_the_edge(monkeypatch):
    """0 and 1 would be infinite for a normal input."""

    def points_at_the_edge(n_inputs, n_samples, seed):
        return np.array([[0.0], [1.0]])

    monkeypatch.setitem(infocap.designs.DESIGNS, "random", points_at_the_edge)
    assert np.isfinite(draw(product_basis("hermite", 1, 2), 2, design="random")).all()


def test_bad_arguments_are_refused_by_name():
    with pytest.raises(ParameterError, match="design='sobl'"):
        draw(BASIS, 64, design="sobl")
    with pytest.raises(ParameterError, match="n_samples=0"):
        draw(BASIS, 0)
    with pytest.raises(ParameterError, match="blocks=0"):
        draw(BASIS, 64, blocks=0)
    with pytest.raises(
        ParameterError, match="cannot be shared out evenly among 3 blocks; take a multiple of 3"
    ):
        draw(BASIS, 1000, blocks=3)
    with pytest.raises(ParameterError, match="weighted=1` must be True or False"):
        infocap.probe(lambda u: u, BASIS, 64, weighted=1)


def test_a_sequence_is_random_and_has_no_blocks():
    basis = infocap.delayed_basis(max_delay={1: 3})
    assert np.array_equal(
        draw(basis, 100, seed=1),
        draw(product_basis("legendre", 1, 1), 100, design="random", seed=1),
    )
    with pytest.raises(ParameterError, match="design='sobol'` is not one of 'random'"):
        draw(basis, 100, design="sobol")
    with pytest.raises(ParameterError, match="blocks=2` has no meaning for a sequence"):
        draw(basis, 100, blocks=2)


PLAN = {"seed": 3, "n_samples": 256, "design": "halton", "blocks": 2}


def test_a_plan_gives_the_inputs_that_it_describes():
    assert np.array_equal(
        planned_inputs(BASIS, PLAN), draw(BASIS, 256, design="halton", seed=3, blocks=2)
    )
    weighted = PLAN | {"weighted": True, "share": 0.3}
    settings = {"design": "halton", "seed": 3, "blocks": 2}
    assert np.array_equal(
        planned_inputs(BASIS, weighted), weighted_inputs(BASIS, 256, **settings, share=0.3)
    )
    del weighted["share"]  # as in plans of before there was a share
    assert np.array_equal(
        planned_inputs(BASIS, weighted), weighted_inputs(BASIS, 256, **settings, share=1.0)
    )
    sequence = infocap.delayed_basis(max_delay={1: 3})
    u = planned_inputs(sequence, {"seed": 3, "n_samples": 100, "runs": 3, "washout": 20})
    assert np.array_equal(u, draw(sequence, 3 * (20 + 34), seed=3))


def test_fingerprints_differ_where_the_inputs_do_and_only_there():
    assert design_fingerprint(PLAN) == design_fingerprint(PLAN | {"max_degree": 7})
    assert design_fingerprint(PLAN) != design_fingerprint(PLAN | {"blocks": 4})
    weighted = PLAN | {"weighted": True}
    assert design_fingerprint(weighted) != design_fingerprint(weighted | {"max_degree": 7})
    assert design_fingerprint(weighted) != design_fingerprint(weighted | {"share": 0.3})
    assert design_fingerprint(weighted) == design_fingerprint(weighted | {"share": 1.0})
    assert design_fingerprint(PLAN) == design_fingerprint(PLAN | {"share": 0.3})
