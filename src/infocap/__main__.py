"""The command line as ``python -m infocap``, where the command `infocap` is not on the path."""

from .lab.cli import run

if __name__ == "__main__":
    run()
