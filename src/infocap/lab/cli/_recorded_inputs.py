"""What the recorded inputs themselves say: --domain auto, and the family where none is named."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click
import numpy as np

from ...errors import ParameterError
from ...recording import Recording

RECORDED = "recorded"
AUTO = "auto"
# Part of [-1, 1] that inputs fill if they are uniform there: fewer than eight samples fill less.
MIN_SHARE_OF_USUAL_RANGE = 0.75


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


def with_recorded_ranges(recording: Recording, input_options: Options) -> Options:
    """Return the options with the range of the values in the files where they ask for it."""
    families: Sequence[Any] = input_options.family
    domains: Sequence[Any] = input_options.domain
    if RECORDED in families and domains:
        raise ParameterError(
            "--family recorded has the range of the recorded inputs already; leave out --domain."
        )
    if not any(np.isnan(domain).any() for domain in domains):
        return input_options
    inputs = np.asarray(recording.inputs[:])
    if len(domains) == 1:
        domains = list(domains) * inputs.shape[1]
    ranges = []
    for domain, column in zip(domains, inputs.T, strict=False):
        is_wanted = np.isnan(domain).any()
        low, high = float(np.nanmin(column)), float(np.nanmax(column))
        ranges.append((low, high) if is_wanted else domain)
    with_ranges: Options = replace(input_options, domain=tuple(ranges))
    return with_ranges


def fit_usual_range(recording: Recording) -> bool:
    """Return whether the inputs lie within [-1, 1] and fill it, each of them.

    That is the range of uniform inputs where nothing else is said. Inputs in volts do not, and have
    the distribution that was recorded.
    """
    inputs = np.asarray(recording.inputs[:])
    low = np.nanmin(inputs, axis=0)
    high = np.nanmax(inputs, axis=0)
    is_inside = (low >= -1) & (high <= 1)
    return bool(np.all(is_inside & (high - low >= 2 * MIN_SHARE_OF_USUAL_RANGE)))
