"""infocap cite: what to cite, ready to paste."""

import click

from .._version import __version__

TEXT = """@article{{ramachandran2026ipc,
  title  = {{Information Processing Capacity of Stationary Physical Systems}},
  author = {{Uma Ramachandran, R. and Massar, S.}},
  year   = {{2026}},
}}

@software{{infocap,
  title   = {{infocap: information processing capacity, with error bars}},
  author  = {{{{The infocap developers}}}},
  version = {{{version}}},
  year    = {{2026}},
}}"""


@click.command()
def cite() -> None:
    """Print the references of the method and of this software, in BibTeX."""
    click.echo(TEXT.format(version=__version__))
