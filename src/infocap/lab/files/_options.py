"""What the user says about the files to read."""

from dataclasses import dataclass, field

from ...samples import TraceSteps
from ._cells import MissingWords

# How `u` begins where it says that inputs are in the names of files.
IN_FILE_NAMES = "name:"


@dataclass(frozen=True)
class ReadOptions:
    """What is wanted of a file, under which names, and whether all is read at once.

    Parameters
    ----------
    u, x
        The names that the user gives to inputs and readouts; None leaves them to the file.
    axes
        What the axes of the readouts are, where the user says it.
    channels
        The column that says which channel a row is of, where each channel has a row of its own.
    sheet
        The sheets of a workbook, by their names.
    missing
        What stands for a missing value.
    in_memory
        Whether all is read at once; otherwise inputs and readouts stay in their file.
    wants_inputs, wants_readouts
        Whether the file is to hold inputs, and whether it is to hold readouts. A recording from two
        files wants one of them from each.
    steps
        How rows are steps of a time-multiplexed trace; None where each row is a sample.
    """

    u: str | None = None
    x: str | None = None
    axes: str | None = None
    channels: str | None = None
    sheet: str | None = None
    missing: MissingWords = field(default_factory=MissingWords)
    in_memory: bool = True
    wants_inputs: bool = True
    wants_readouts: bool = True
    steps: TraceSteps | None = None

    @property
    def names_nothing(self) -> bool:
        """Whether the user leaves it to the file what is input and what is readout."""
        return self.u is None and self.x is None

    @property
    def inputs_in_names(self) -> bool:
        """Whether the user says that the inputs are in the names of files, one per sample."""
        return (self.u or "").startswith(IN_FILE_NAMES)
