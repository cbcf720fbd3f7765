"""What infocap raises and warns: every message names the value it found and what to do next."""


class InfocapError(Exception):
    """The base of every error that infocap raises on purpose."""


class ParameterError(InfocapError, ValueError):
    """An argument has no meaning as given: a name, a size, a combination of options."""


class DataError(InfocapError, ValueError):
    """The data cannot be used as they are: their shape, their type or their values."""


class DataWarning(UserWarning):
    """The answer is usable but weaker than it looks; ``-W error`` makes it an error."""
