"""What the user says about the files to read."""

from dataclasses import dataclass

# What is wanted from a file, "u", "x" or both, with the names that the user gives, or None.
Request = dict[str, str | None]


@dataclass(frozen=True)
class ReadOptions:
    """Names of inputs and readouts, axes of the readouts, and whether all is read at once."""

    u: str | None = None
    x: str | None = None
    axes: str | None = None
    in_memory: bool = True

    @property
    def names_nothing(self) -> bool:
        """Whether the user leaves it to the file what is input and what is readout."""
        return self.u is None and self.x is None
