"""--family recorded and --domain auto: what the recorded inputs themselves say."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click
import numpy as np

from ...basis import samples
from ...errors import ParameterError
from ...recording import Recording

RECORDED = "recorded"
AUTO = "auto"


class RangeEnd(click.ParamType):
    """One end of a range: a number, or the word ``auto``, which is NaN."""

    name = "float"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the end as a number."""
        if value == AUTO:
            return float("nan")
        return float(click.FLOAT.convert(value, param, ctx))


class InputsCommand(click.Command):
    """A command with the options of inputs: `--domain auto` takes one word in place of two."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write `--domain auto` as `--domain auto auto`, then parse as usual."""
        words: list[str] = []
        for word in args:
            words.append(word)
            if word == AUTO and words[-2:-1] == ["--domain"]:
                words.append(word)
        return super().parse_args(ctx, words)


Options = TypeVar("Options", bound=Any)


def as_recorded(recording: Recording, input_options: Options) -> Options:
    """Return the options with families and ranges of the recorded inputs where they ask for them.

    A family is then that of the recorded values, and a range goes from the smallest to the largest.
    """
    families: Sequence[Any] = input_options.family
    domains: Sequence[Any] = input_options.domain
    wants_domains = any(np.isnan(domain).any() for domain in domains)
    wants_families = RECORDED in families
    if not wants_families and not wants_domains:
        return input_options
    inputs = np.asarray(recording.inputs[:])
    n_inputs = inputs.shape[1]
    if wants_families:
        if domains:
            raise ParameterError(
                "--family recorded has the range of the recorded inputs already; leave out "
                "--domain."
            )
        families = _one_for_each(families, n_inputs)
        families = [
            samples(_finite(inputs[:, k])) if family == RECORDED else family
            for k, family in enumerate(families)
        ]
    if wants_domains:
        domains = _one_for_each(domains, n_inputs)
        domains = [
            (float(np.nanmin(inputs[:, k])), float(np.nanmax(inputs[:, k])))
            if np.isnan(domain).any()
            else domain
            for k, domain in enumerate(domains)
        ]
    recorded: Options = replace(input_options, family=tuple(families), domain=tuple(domains))
    return recorded


def _one_for_each(values: Sequence[Any], n_inputs: int) -> Sequence[Any]:
    return list(values) * n_inputs if len(values) == 1 else values


def _finite(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]
