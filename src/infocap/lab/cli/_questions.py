"""infocap channels and task: which readouts matter, and which device suits a task."""

from pathlib import Path

import click

from ..._files import write_whole
from ..._formatting import percent
from ...errors import ParameterError
from ...result import load_result
from ...workflow import rank_channels
from ._estimate import BasisOptions, announce, basis_for
from ._files import names_of
from ._outputs import PICTURE, refuse_existing, refuse_pictures, save_picture
from ._recorded_inputs import InputsCommand
from ._terminal import FILE, FORCE, PATH, NamedInputFiles, echo, options, say, warnings_in_checks


@click.command(cls=InputsCommand)
@options("files", NamedInputFiles)
@options("basis_options", BasisOptions)
@click.option("--washout", type=int, help="Steps that are not used at the start of each run.")
@click.option("-o", "--output", type=FILE, help="Table of all channels, .csv")
@click.option("--plot", **PICTURE, help="Picture, .png, .pdf or .svg")
@FORCE
def channels(
    files: NamedInputFiles,
    basis_options: BasisOptions,
    *,
    washout: int | None,
    output: Path | None,
    plot: tuple[Path, ...],
    force: bool,
) -> None:
    """Find the few readouts of FILES that keep most of the capacity.

    Of each readout it says what is lost without it.
    """
    written = [*plot]
    if output is not None:
        refuse_existing(output, force, (".csv",))
        written = [output, *plot]
    refuse_pictures(plot, written)
    recording = files.read()
    chosen = basis_for(recording, basis_options)
    announce(files, recording, chosen)
    with warnings_in_checks():
        ranking = rank_channels(recording, basis=chosen.basis, washout=washout)
    if output is not None:
        with write_whole(output) as new_file:
            ranking.to_dataframe().to_csv(new_file)
    for path in plot:
        save_picture("channels", ranking, path)
    say(["", *ranking.table_lines()], ranking.result.checks, written)


@click.command()
@click.argument("name")
@click.argument("files", type=PATH, nargs=-1, required=True)
@click.option(
    "--names", multiple=True, help="Once for each device.  [default: the names of the files]"
)
def task(name: str, files: tuple[Path, ...], names: tuple[str, ...]) -> None:
    """Predict how well devices do the task NAME from their results.

    A NAME is narma10, for example, and the results in FILES are .nc files of devices with memory.
    What the task needs is compared with what each device computes; nothing is trained.
    """
    from ...tasks import named_task, predict_score

    if names and len(names) != len(files):
        raise ParameterError(f"--names is given {len(names)} times for {len(files)} files.")
    predicted = []
    with warnings_in_checks():
        for device, file in zip(names or names_of(files), files, strict=True):
            result = load_result(file)
            score = predict_score(named_task(name, result.basis), result)
            predicted.append((device, score))
    predicted.sort(key=lambda pair: -pair[1].score)
    width = max(len(device) for device, _ in predicted)
    echo(f"{predicted[0][1].task}, predicted from capacities; ± is one standard error")
    for device, score in predicted:
        outside = percent(max(1 - score.explained, 0.0))
        echo(
            f"  {device:<{width}}  R² {score.score_in_words}, NRMSE {score.nrmse:.3f}; "
            f"{outside} of the target lies outside the basis"
        )
