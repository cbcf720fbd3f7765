"""infocap import, diagnose, show, cite, compare, report, card, gallery: what files hold."""

from collections.abc import Sequence
from pathlib import Path

import click

from ..._files import write_whole
from ..._formatting import counted, join_names
from ...basis import ProductBasis
from ...errors import DataError, ParameterError
from ...recording import Recording, find_steps, without_overshoot
from ...result import ROWS_OF_TABLE, is_result, load_result
from ...workflow import Diagnosis, is_sweep, load_sweep, repair
from ...workflow import cite as cite_result
from ...workflow import compare as compare_results
from ...workflow import diagnose as diagnose_recording
from ._estimate import BasisOptions, InputOptions, basis_for
from ._outputs import (
    PICTURE,
    ShowOutput,
    refuse_existing,
    refuse_other_page,
    refuse_pictures,
    save_picture,
)
from ._recorded_inputs import InputsCommand
from ._summary import describe, summary
from ._terminal import (
    COMPONENTS,
    FILE,
    FORCE,
    PATH,
    InputFiles,
    NameChoice,
    NamedInputFiles,
    echo,
    exit_with_warnings,
    is_warning,
    options,
    say,
    warnings_in_checks,
    wrapped,
)

# Files of this kind keep the record of a repair; a table keeps numbers alone.
SUFFIX_WITH_METADATA = ".nc"
# Names of channels that `infocap diagnose` lists.
MAX_CHANNELS_LISTED = 6
# Rows for which inputs stay constant, from which on they may be virtual nodes.
MIN_ROWS_HELD = 2


@click.command("import")
@options("files", NamedInputFiles)
@click.option(
    "--preview",
    is_flag=True,
    help="Only show what would become input and readout, and what would not.",
)
@click.option("-o", "--output", type=PATH, help="File, .nc or .csv")
@FORCE
def import_(files: NamedInputFiles, preview: bool, output: Path | None, force: bool) -> None:
    """Bring inputs and readouts of any FILES into one file.

    The first of the FILES has the inputs and the second the readouts, or each has both. The second
    may be a folder with one file per sample. Inputs that infocap draw wrote are sorted into design
    order, with their repeats and references. What was taken for what is kept in the file.
    """
    if preview == (output is not None):
        raise ParameterError(
            "give the file to write, -o run.nc, or --preview to look first: one of the two."
        )
    if output is None:
        _preview(files)
        return
    refuse_existing(output, force)
    recording = files.read()
    recording.save(output)
    echo(f"{recording}\nwritten to {output}")


def _preview(files: NamedInputFiles) -> None:
    """Print what the files hold; where they cannot be read, the names that they hold."""
    try:
        recording = files.read()
    except DataError as problem:
        for note in getattr(problem, "__notes__", []):
            echo(note)
        raise
    # What was left out is among the lines already.
    checks = [check for check in recording.checks if "left_out" not in check.found]
    say([*describe(recording), *_question_about_steps(files, recording)], checks, [])
    echo("Nothing was written; the same command with -o run.nc in place of --preview writes it.")


def _question_about_steps(files: NamedInputFiles, recording: Recording) -> list[str]:
    """Return a question where inputs are held for several rows, which may be virtual nodes."""
    if files.rows_per_step is not None:
        return []
    try:
        steps = find_steps(recording.inputs)
    except DataError:  # they are not held
        return []
    if steps.rows_per_step < MIN_ROWS_HELD:
        return []
    n_rows = steps.rows_per_step
    options_needed = f"--rows-per-step {n_rows}"
    if steps.offset:
        options_needed += f" --offset {steps.offset}"
    return [
        "",
        wrapped(
            f"The input stays constant for {n_rows} rows. Were these {n_rows} virtual nodes? Then "
            f"give {options_needed}. If it was measured {n_rows} times, go on as it is."
        ),
    ]


@click.command(cls=InputsCommand)
@options("files", NamedInputFiles)
@options("input_options", InputOptions)
@click.option(
    "--max-delay", help="With memory: the largest delay of each degree, as 1:100,2:40,3:20."
)
@click.option("--n-components", **COMPONENTS)
@click.option(
    "--fix", is_flag=True, help="Repair exact findings alone, into the new file of --output."
)
@click.option("-o", "--output", type=FILE, help="New file for the repaired recording, .nc")
@FORCE
@click.option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
def diagnose(
    files: NamedInputFiles,
    input_options: InputOptions,
    max_delay: str | None,
    *,
    n_components: int | str | None,
    fix: bool,
    output: Path | None,
    force: bool,
    strict: bool,
) -> None:
    """Look for mistakes in the data of FILES before any estimation.

    With --fix, exact copies of rows are left out, second measurements become repeats, cells with an
    instrument's code become missing, and readouts that are shifted throughout or in parts are
    realigned if they then pass all tests. No row is left out because it misfits. Where nothing is
    exact, no file is written.
    """
    if fix != (output is not None):
        raise ParameterError(
            "--fix and --output go together: what is repaired is written to a new file."
        )
    if output is not None:
        refuse_existing(output, force, (SUFFIX_WITH_METADATA,))
        if output.resolve() in {Path(file).resolve() for file in files.files}:
            raise ParameterError(
                f"{output} is the file that is diagnosed, which stays as it is; give another name."
            )
    with warnings_in_checks():
        recording = files.read()
        basis = _declared_basis(recording, input_options, max_delay)
        if basis is not None:
            recording = without_overshoot(recording, basis.families)
        diagnosis = diagnose_recording(recording, basis=basis, n_components=n_components)
    lines = _diagnosis_lines(files, diagnosis)
    say(lines, diagnosis.checks, [])
    if output is not None:
        _write_repaired(diagnosis, output)
    if strict and any(map(is_warning, diagnosis.checks)):
        exit_with_warnings()


def _declared_basis(
    recording: Recording, input_options: InputOptions, max_delay: str | None
) -> ProductBasis | None:
    """Return the basis that says how the inputs are distributed; None where nothing says it."""
    basis_options = BasisOptions(**vars(input_options), max_delay=max_delay)
    if basis_options == BasisOptions() and not recording.metadata.get("plan"):
        return None
    return basis_for(recording, basis_options).basis


def _diagnosis_lines(files: NamedInputFiles, diagnosis: Diagnosis) -> list[str]:
    """Return what was looked at, and what too few rows leave open."""
    recording = diagnosis.recording
    n_samples, n_inputs = recording.inputs.shape
    readouts = counted(recording.readouts.shape[1], "readout")
    if recording.channel:
        readouts += f" ({join_names(recording.channel, MAX_CHANNELS_LISTED)})"
    lines = [wrapped(f"{files}: {n_samples} samples, {counted(n_inputs, 'input')}, {readouts}.")]
    lines += _list_under("Looked at and in order", diagnosis.passed)
    lines += _list_under("Too few rows to look at", diagnosis.skipped)
    if not diagnosis.checks:
        lines.append("\nNothing wrong was found.")
    return lines


def _list_under(title: str, sentences: Sequence[str]) -> list[str]:
    if not sentences:
        return []
    return [f"\n{title}:", *(wrapped(f"  {sentence}") for sentence in sentences)]


def _write_repaired(diagnosis: Diagnosis, output: Path) -> None:
    """Repair what is exact into a new file, and say what was done and what was not."""
    with warnings_in_checks():
        outcome = repair(diagnosis)
    if outcome.recording is None:
        echo(wrapped(f"nothing was changed, and {output} was not written: {outcome.reason}."))
        return
    for done in outcome.done:
        echo(wrapped(f"repaired: {done}"))
    for refusal in outcome.refusals:
        echo(wrapped(f"not repaired: {refusal}"))
    outcome.recording.save(output)
    n_warnings = sum(map(is_warning, outcome.diagnosis.checks))
    warnings_left = counted(n_warnings, "warning") if n_warnings else "no warning is"
    echo(f"wrote {output}; {warnings_left} left")


@click.command()
@options("files", InputFiles)
@click.option("--top", type=click.IntRange(min=0), default=20, help="Number of functions to show.")
@click.option(
    "--latex",
    type=NameChoice(ROWS_OF_TABLE),
    help="Print a table for a paper instead: by degree, or of the strongest functions.",
)
@options("output", ShowOutput)
def show(files: InputFiles, top: int, latex: str | None, output: ShowOutput) -> None:
    """Show the result, the sweep or the recording that FILES hold.

    `infocap import --preview` looks into files of other programs.
    """
    output.check()
    if len(files.files) == 1 and is_sweep(files.files[0]):
        output.tell([str(load_sweep(files.files[0]))], ())
        return
    if len(files.files) == 1 and is_result(files.files[0]):
        result = load_result(files.files[0])
        if latex is not None:
            echo(result.to_latex(latex))
            return
        output.finish(result, summary(result, top))
        return
    if output.files or latex is not None:
        raise ParameterError(
            f"{files} is a recording and no result; `infocap estimate {files}` makes a result, "
            "which can be drawn and written."
        )
    recording = files.read()
    output.tell(describe(recording), recording.checks)


@click.command()
@click.argument("result", type=FILE, required=False)
def cite(result: Path | None) -> None:
    """Print what to cite, and of a RESULT the methods paragraph.

    The references are in BibTeX.
    """
    citation = cite_result(None if result is None else load_result(result))
    if citation.methods:
        echo(f"{citation.methods}\n")
    echo(citation.bibtex)


@click.command()
@click.argument("files", type=PATH, nargs=-1, required=True)
@click.option(
    "--names", multiple=True, help="Once for each device.  [default: the names of the files]"
)
@click.option("-o", "--output", type=FILE, help="Table of everything compared, .csv")
@FORCE
@click.option("--plot", **PICTURE, help="Picture, .png, .pdf or .svg")
@click.option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
@click.option(
    "--different-drives",
    is_flag=True,
    help="Under the recorded law: compare although the inputs were different ones.",
)
def compare(
    files: tuple[Path, ...],
    names: tuple[str, ...],
    output: Path | None,
    *,
    different_drives: bool,
    force: bool,
    plot: tuple[Path, ...],
    strict: bool,
) -> None:
    """Put results side by side, with intervals of their differences."""
    if len(files) < 2:
        raise ParameterError(
            "compare needs two results or more, such as `infocap compare a.nc b.nc`."
        )
    written = [*plot]
    if output is not None:
        refuse_existing(output, force, (".csv",))
        written = [output, *plot]
    refuse_pictures(plot, written)
    results = [load_result(file) for file in files]
    with warnings_in_checks():
        comparison = compare_results(
            *results, names=names or names_of(files), different_drives=different_drives
        )
    if output is not None:
        with write_whole(output) as new_file:
            comparison.to_dataframe().to_csv(new_file, index=False)
    for path in plot:
        save_picture("compare", comparison, path)
    say(comparison.table_lines(), comparison.checks, written)
    if strict and comparison.checks:
        exit_with_warnings()


def names_of(files: Sequence[Path]) -> tuple[str, ...]:
    """Return names of devices: those of the files, with folders where these tell them apart."""
    stems = tuple(file.stem for file in files)
    if len(set(stems)) == len(files):
        return stems
    return tuple(map(str, files))


@click.command()
@click.argument("result", type=PATH)
@click.option("-o", "--output", type=FILE, required=True, help="File, .html")
@click.option("--title", help="Headline of the page.")
def report(result: Path, output: Path, title: str | None) -> None:
    """Show a result as one HTML page, which needs no network.

    RESULT may be the folder that `infocap sweep -o` wrote: the page then has a picture for each
    setting.
    """
    from ..report import save  # with matplotlib, which is slow to import

    refuse_other_page(output, (".html",))
    loaded = load_sweep(result) if result.is_dir() else load_result(result)
    path = save(loaded, output, title)
    echo(f"written to {path}")


@click.command()
@click.argument("result", type=FILE)
@click.option(
    "-o", "--output", type=FILE, required=True, help="File, .html (a page) or .svg (a picture)."
)
@click.option(
    "--title", help="Name of the device.  [default: the plan's title, or the file's name]"
)
@click.option(
    "--about",
    nargs=2,
    multiple=True,
    metavar="NAME TEXT",
    help="A fact about the device, such as 'what' it is or its 'cost per inference'.",
)
def card(result: Path, output: Path, title: str | None, about: tuple[tuple[str, str], ...]) -> None:
    """Show a result as the capacity card of a device, to share.

    A page holds its numbers: infocap show, compare and report, and `load_result` in Python, read it
    as a RESULT. A picture is for a talk.
    """
    from ..report import card as save_card  # with matplotlib, which is slow to import

    refuse_other_page(output, (".html", ".svg"))
    path = save_card(load_result(result), output, title, dict(about))
    echo(f"written to {path}")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option("-o", "--output", type=FILE, required=True, help="File, .html")
@click.option("--title", default="Gallery of devices", help="Headline of the page.")
def gallery(folder: Path, output: Path, title: str) -> None:
    """Compare the devices whose cards or results lie in FOLDER."""
    from ..report import gallery as save_gallery  # with matplotlib, which is slow to import

    refuse_other_page(output, (".html",))
    names = save_gallery(folder, output, title)
    echo(f"{counted(len(names), 'device')}: {join_names(names)}\nwritten to {output}")
