"""Files opened in a process of their own, so that a damaged one can neither crash, hang nor fill this one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from ._files import NUMBERS, Contents, Variable, blame, memory
from .errors import DataError, InfocapError

# The child finds what its parent finds, and loads only the modules that it needs: 0.2 s instead of 0.5 s.
PROGRAM = """
import json, sys, types
home, opener, path, sys.path = json.loads(sys.argv[1])
sys.modules["infocap"] = types.ModuleType("infocap")
sys.modules["infocap"].__path__ = [home]
from infocap._child import serve
serve(opener, path)
"""
# Seconds that Python may take to start on a busy machine, and to answer; and bytes per second that a slow disk reads
# and a slow codec unpacks: what takes longer hangs.
START_S, ANSWER_S, SLOWEST = 60.0, 10.0, 1e6
# Bytes of memory for an answer beside the array: for libraries, their threads, and what they unpack on the way. The
# array itself takes what it declares several times over, while it is read, unpacked and converted.
SPARE_BYTES, COPIES = 400_000_000, 6


@contextmanager
def in_child(opener: str, path: Path) -> Iterator[Contents]:
    """Open a file by a function ``"module:name"`` of its path that gives `Contents`, in another process."""
    settings = json.dumps([str(Path(__file__).parent), opener, str(path.absolute()), sys.path])
    command = [sys.executable, "-P", "-W", "ignore", "-c", PROGRAM, settings]
    alone = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX"), "1"
    )
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=os.environ | alone, **pipes) as process:
        try:
            _answer(process, path, START_S)
            slow = (
                sum(one.stat().st_size for one in (path.rglob("*") if path.is_dir() else [path]))
                / SLOWEST
            )
            found = _answer(process, path, ANSWER_S + slow)
            variables = {}
            for name, (shape, kind, *more) in found["variables"].items():
                dtype: np.dtype[Any] = np.dtype(kind)
                load = partial(_ask, process, path, name, ANSWER_S + slow)
                variables[name] = Variable(tuple(shape), dtype, load, *more)
            yield Contents(path, found["kind"], variables, found["attributes"])
        finally:
            process.kill()


def _ask(process: subprocess.Popen[bytes], path: Path, name: str, seconds: float) -> Any:
    """Ask the child for an array, or for the strings of one."""
    assert process.stdin is not None
    with suppress(OSError):  # it has ended; what it says then tells so
        process.stdin.write(json.dumps(name).encode() + b"\n")
        process.stdin.flush()
    return _answer(process, path, seconds)["values"]


def _answer(process: subprocess.Popen[bytes], path: Path, seconds: float) -> dict[str, Any]:
    """Wait for an answer: its words, and the array that follows them, if one does; an error there is one here."""
    out: Any = process.stdout
    watch = Timer(seconds, process.kill)
    watch.start()
    try:
        found = json.loads(out.readline())
        if "shape" in found:
            values = found["values"] = np.empty(found["shape"], found["dtype"])
            if values.size and out.readinto(values.data) < values.nbytes:
                raise EOFError
    except (ValueError, EOFError):  # nothing, or half of an answer
        late = not watch.is_alive()
        process.kill()
        said = f"its reader did not answer within {seconds:.0f} s" if late else "its reader crashed"
        raise DataError(
            f"{path} cannot be read ({said}): it is damaged; take another copy of it."
        ) from None
    finally:
        watch.cancel()
    if "error" in found:
        raise DataError(found["error"])
    return found


def serve(opener: str, place: str) -> None:
    """Be the child: load libraries, describe the file, then send what is asked for, until nobody asks."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get among the answers
    path, (module, name) = Path(place), opener.split(":")

    def answer(array: np.ndarray | None = None, **words: Any) -> None:
        words |= {} if array is None else {"shape": array.shape, "dtype": array.dtype.str}
        out.write(json.dumps(words, default=lambda one: one.tolist()).encode() + b"\n")
        if array is not None and array.size:
            out.write(np.ascontiguousarray(array).data)
        out.flush()

    opened = getattr(import_module(module), name)
    answer()
    try:
        limit_memory(0)
        with opened(path) as contents:
            described = {}
            for name, one in contents.variables.items():
                dtype = (
                    one.dtype.str
                    if one.dtype.kind in NUMBERS
                    else "U"
                    if one.dtype.kind in "US"
                    else "O"
                )
                described[name] = [one.shape, dtype, one.attributes, one.missing]
            with blame(path, contents.kind):
                answer(kind=contents.kind, variables=described, attributes=contents.attributes)
            for line in sys.stdin.buffer:
                asked = json.loads(line)
                variable = contents.variables[asked]
                limit_memory(int(np.prod(variable.shape, dtype=float)) * variable.dtype.itemsize)
                if variable.dtype.kind in NUMBERS:
                    answer(contents.numbers(asked))
                else:
                    answer(values=contents.text(asked))
    except InfocapError as problem:
        answer(error=str(problem))
    except MemoryError:
        answer(
            error=f"{path} takes more memory than its arrays declare; it is damaged, or made to do harm."
        )


def limit_memory(n_bytes: int) -> None:
    """Let this process use so many bytes several times over, and some to spare, beyond what it has now (Linux only)."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[5])  # data and stacks
        most = int(min(pages * resource.getpagesize() + SPARE_BYTES + COPIES * n_bytes, memory()))
        resource.setrlimit(
            resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1])
        )
