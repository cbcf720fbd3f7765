"""What files hold: infocap import, doctor, show, compare, report, card and gallery, in the terminal or as a page."""

from pathlib import Path

import click

from ..._files import replaced
from ..._formatting import counted, listed
from ...errors import DataError, ParameterError
from ...result._files import is_result, load_result
from ...workflow._compare import compare as compare_results
from ...workflow._diagnose import diagnose as find_mistakes
from . import _outputs
from ._estimate import Wanted, wanted_basis
from ._terminal import FILE, FORCE, PATH, Source, echo, options, say, warnings_in_checks, wrapped

# Mistakes that hide each other are found one after the other; data with more of them are not repaired safely.
MOST_REPAIRS = 6


@click.command("import")
@options("source", Source)
@click.option(
    "--preview",
    is_flag=True,
    help="Only show what would become input and readout, and what would not.",
)
@click.option("-o", "--output", type=PATH, help="File, .nc or .csv")
@FORCE
def import_(source: Source, preview: bool, output: Path | None, force: bool) -> None:
    """Bring inputs and readouts of any FILES into one file.

    The first of the FILES has the inputs and the second the readouts, or each has both. The second may be a folder with
    one file per sample. Inputs that infocap draw wrote are sorted into design order, with their repeats and references.
    What was taken for what is kept in the file.
    """
    if preview == (output is not None):
        raise ParameterError(
            "give the file to write, -o run.nc, or --preview to look first: one of the two."
        )
    if output is not None:
        _outputs.refuse_existing(output, force)
    try:
        recording = source.read()
    except DataError as problem:
        for note in getattr(problem, "__notes__", []) if preview else []:
            echo(note)
        raise
    if output is None:
        told = [
            one for one in recording.checks if "left_out" not in getattr(one, "found", {})
        ]  # shown line by line
        say(_outputs.describe(recording), told, [])
        echo(
            "Nothing was written; the same command with -o run.nc in place of --preview writes it."
        )
    else:
        recording.save(output)
        echo(f"{recording}\nwritten to {output}")


@click.command()
@options("source", Source)
@options("wanted", Wanted)
@click.option(
    "--fix", is_flag=True, help="Repair what can be repaired safely, into the new file of --output."
)
@click.option("-o", "--output", type=FILE, help="New file for the repaired recording, .nc or .csv")
@click.option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
def diagnose(source: Source, wanted: Wanted, fix: bool, output: Path | None, strict: bool) -> None:
    """Look for mistakes in the data of FILES before any estimation."""
    if fix != (output is not None):
        raise ParameterError(
            "--fix and --output go together: what is repaired is written to a new file."
        )
    if output is not None:
        _outputs.refuse_existing(output, force=False)
    with warnings_in_checks():
        recording = source.read()
        basis, _ = wanted_basis(recording, wanted)
        told = (
            recording.metadata.get("plan")
            or wanted.input
            or wanted.family
            or wanted.domain
            or wanted.max_delay
        )
        asked = basis if told else None
        found = find_mistakes(recording, basis=asked)
    u, x = recording.inputs, recording.readouts
    named = f" ({listed(recording.channel, 6)})" if recording.channel else ""
    contents = f"{counted(u.shape[1], 'input')}, {counted(x.shape[1], 'readout')}{named}"
    lines = [wrapped(f"{source}: {len(u)} samples, {contents}.")]
    for title, names in (
        ("Looked at and in order", found.fit),
        ("Too few rows to look at", found.skipped),
    ):
        lines += [f"\n{title}:", *(wrapped(f"  {one}") for one in names)] if names else []
    say(lines if found.checks else [*lines, "\nNothing wrong was found."], found.checks, [])
    warned = any(one.kind == "warning" for one in found.checks)
    for _ in range(MOST_REPAIRS if fix else 0):
        better = found.repaired()
        if better is None:
            break
        echo(wrapped(f"repaired: {better.metadata['repairs'][-1]:.300}"))
        with warnings_in_checks():
            found = find_mistakes(better, basis=asked)
    if output is not None:
        found.recording.save(output)
        left = sum(one.kind == "warning" for one in found.checks)
        echo(f"wrote {output}; {counted(left, 'warning') if left else 'no warning is'} left")
    if strict and warned:
        click.get_current_context().exit(1)


@click.command()
@options("source", Source)
@click.option("--top", type=click.IntRange(min=0), default=20, help="Number of functions to show.")
@options("out", _outputs.Out)
def show(source: Source, top: int, out: _outputs.Out) -> None:
    """Show the result, or the recording, that FILES hold."""
    out.check()
    if len(source.files) == 1 and is_result(source.files[0]):
        result = load_result(source.files[0])
        out.finish(result, _outputs.summary(result, top))
    elif out.files:
        raise ParameterError(
            f"{source} is a recording; `infocap estimate` writes and draws what it finds in it."
        )
    else:
        recording = source.read()
        out.tell(_outputs.describe(recording), recording.checks)


@click.command()
@click.argument("files", type=PATH, nargs=-1, required=True)
@click.option(
    "--names", multiple=True, help="Once for each device.  [default: the names of the files]"
)
@click.option("-o", "--output", type=FILE, help="Table of everything compared, .csv")
@FORCE
@click.option("--plot", **_outputs.PICTURE, help="Picture, .png, .pdf or .svg")
@click.option("--width", **_outputs.WIDTH)
@click.option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
def compare(
    files: tuple[Path, ...],
    names: tuple[str, ...],
    output: Path | None,
    force: bool,
    plot: tuple[Path, ...],
    width: float | None,
    strict: bool,
) -> None:
    """Put results side by side, with intervals of their differences."""
    if len(files) < 2:
        raise ParameterError(
            "compare needs two results or more, such as `infocap compare a.nc b.nc`."
        )
    if output is not None:
        _outputs.refuse_existing(output, force, (".csv",))
    written = [*plot] if output is None else [output, *plot]
    _outputs.check_pictures(plot, written)
    results = [load_result(file) for file in files]
    if not names:
        alike = len({file.stem for file in files}) < len(files)  # then the folders tell them apart
        names = tuple(str(file) if alike else file.stem for file in files)
    with warnings_in_checks():
        comparison = compare_results(*results, names=names)
    if output is not None:
        with replaced(output) as beside:
            comparison.to_dataframe().to_csv(beside, index=False)
    for path in plot:
        _outputs.save_picture("compare", comparison, path, width)
    lines = [line for line in repr(comparison).split("\n") if not line.startswith("  check: ")]
    say(lines, comparison.checks, written)
    if strict and comparison.checks:
        click.get_current_context().exit(1)


@click.command()
@click.argument("result", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="File, .html")
@click.option("--title", help="Headline of the page.")
def report(result: Path, output: Path, title: str | None) -> None:
    """Show a result as one HTML page, which needs no network."""
    from ..report._page import save

    check_page(output, (".html", ".htm"))
    echo(f"written to {save(load_result(result), output, title)}")


def check_page(output: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse to write a page or a card over anything else."""
    ours = output.is_file() and (_outputs.PAGE in output.read_bytes()[:2000] or is_result(output))
    _outputs.check_place(output, suffixes, ours, "a page of infocap")


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
    help="Say 'what' it is, its 'cost per inference', ...",
)
def card(result: Path, output: Path, title: str | None, about: tuple[tuple[str, str], ...]) -> None:
    """Show a result as the capacity card of a device, to share.

    It holds its numbers: infocap show, compare and report, and `load_result` in Python, read it as they read a RESULT.
    """
    from ..report._card import card as save_card

    check_page(output, (".html", ".svg"))
    echo(f"written to {save_card(load_result(result), output, title, dict(about))}")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option("-o", "--output", type=FILE, required=True, help="File, .html")
@click.option("--title", default="Gallery of devices", help="Headline of the page.")
def gallery(folder: Path, output: Path, title: str) -> None:
    """Compare the devices whose cards or results lie in FOLDER."""
    from ..report._card import gallery as save_gallery

    check_page(output, (".html",))
    names = save_gallery(folder, output, title)
    echo(f"{counted(len(names), 'device')}: {listed(names)}\nwritten to {output}")
