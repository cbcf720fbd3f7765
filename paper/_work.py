"""Jobs that are done once: on any executor, each kept on disk as soon as it is finished."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, as_completed
from pathlib import Path
from typing import Any

import xarray as xr
from tqdm import tqdm

import infocap

NOT_COMPUTED = ("cli", "plot")  # parts of infocap that change no number


class Work:
    """Where jobs are done and where their data sets are kept; by default here, and nowhere."""

    def __init__(
        self, executor: Executor | None = None, folder: Path | None = None, progress: bool = False
    ) -> None:
        self.executor, self.folder, self.progress = executor, folder, progress
        self.warnings: dict[str, None] = {}  # what was warned, once each, in order

    def do(self, jobs: Mapping[str, functools.partial[xr.Dataset]]) -> dict[str, xr.Dataset]:
        """The data set of every job: from disk where it is there and whole, else computed and kept at once.

        A job is known by its arguments, its own source and the code of infocap. Other functions of its script
        that it calls are not looked at: after changing those, remove the folder.
        """
        keys = {
            name: digest(inspect.getsource(job.func), job.args, job.keywords) for name, job in jobs.items()
        }
        done = {name: data for name in jobs if (data := self.load(name, keys[name])) is not None}
        missing = [name for name in jobs if name not in done]
        with tqdm(total=len(jobs), initial=len(done), unit="job", disable=not self.progress) as bar:
            for name, data in self._computed({name: jobs[name] for name in missing}):
                self.save(name, keys[name], data)
                done[name] = data
                bar.update()
        for name in jobs:
            self.warnings |= dict.fromkeys(json.loads(done[name].attrs["warnings"]))
        return {name: done[name] for name in jobs}

    def _computed(self, jobs: Mapping[str, functools.partial[xr.Dataset]]) -> Any:
        """Names and data sets, as they come."""
        if self.executor is None:
            for name, job in jobs.items():
                yield name, recorded(job)
            return
        futures = {self.executor.submit(recorded, job): name for name, job in jobs.items()}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            for future in futures:
                future.cancel()

    def load(self, name: str, key: str) -> xr.Dataset | None:
        """What was kept under this key; files that are not what was written are thrown away."""
        if self.folder is None:
            return None
        for path in self.folder.glob(f"{plain(name)}-{key}-*.nc"):
            if path.stem.endswith(checksum(path)):
                with xr.open_dataset(path, engine="h5netcdf") as data:
                    return (
                        data.load().drop_encoding()
                    )  # or texts joined later would be cut to this file's length
            path.unlink()
        return None

    def save(self, name: str, key: str, data: xr.Dataset) -> None:
        """Write beside, then move into place; the checksum in the name tells a whole file from a broken one."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f".{plain(name)}-{os.getpid()}.part"
        data.to_netcdf(part, engine="h5netcdf")
        part.replace(self.folder / f"{plain(name)}-{key}-{checksum(part)}.nc")


def recorded(job: Callable[[], xr.Dataset]) -> xr.Dataset:
    """A job's data set, with the warnings raised on the way among its attributes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", infocap.errors.DataWarning)
        data = job()
    data.attrs["warnings"] = json.dumps(list(dict.fromkeys(str(one.message) for one in caught)))
    return data


def digest(*parts: Any) -> str:
    """A key of plain data, of infocap's version and of its code."""
    text = json.dumps([infocap.__version__, _code(), parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def checksum(path: Path) -> str:
    """Sixteen digits that tell a file from any other."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def plain(name: str) -> str:
    """A name fit for a file."""
    return "".join(letter if letter.isalnum() or letter in "=.+-" else "_" for letter in name)


@functools.cache
def _code() -> str:
    """Changes whenever a number may."""
    root = Path(infocap.__file__).parent
    sources = sorted(
        path
        for path in root.rglob("*.py")
        if path.relative_to(root).parts[0] not in (*NOT_COMPUTED, "_paper")
    )
    total = hashlib.sha256()
    for path in sources:
        total.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return total.hexdigest()[:16]
