"""Jobs that are done once: on any executor, each kept on disk as soon as it is finished; and figures made of them."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import xarray as xr
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import infocap


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
            name: digest(inspect.getsource(job.func), job.args, job.keywords)
            for name, job in jobs.items()
        }
        done = {
            name: data for name, key in keys.items() if (data := self.load(name, key)) is not None
        }
        with (
            ThreadPoolExecutor(1)
            if self.executor is None
            else nullcontext(self.executor) as executor
        ):
            futures = {
                executor.submit(recorded, job): name
                for name, job in jobs.items()
                if name not in done
            }
            try:
                for future in tqdm(
                    as_completed(futures), total=len(futures), disable=not self.progress
                ):
                    name = futures[future]
                    done[name] = future.result()
                    self.save(name, keys[name], done[name])
            finally:
                for future in futures:
                    future.cancel()
        for name in jobs:
            self.warnings |= dict.fromkeys(json.loads(done[name].attrs["warnings"]))
        return {name: done[name] for name in jobs}

    def figure(self, name: str, script: Any, quick: bool) -> xr.Dataset:
        """The data set of a figure's script, from disk where script and parameters are the same, with all warnings."""
        from . import _common

        changes = script.QUICK if quick else {}
        sources = [inspect.getsource(one) for one in (script, _common, sys.modules[__name__])]
        key = digest(sources, script.PARAMETERS | changes)
        data = self.load(name, key)
        if data is None:
            data = recorded(lambda: script.compute(self, **changes))
            said = self.warnings | dict.fromkeys(json.loads(data.attrs["warnings"]))
            data.attrs["warnings"] = json.dumps(list(said))
            data.attrs |= {
                "figure": name,
                "quick": str(quick),
                "infocap_version": infocap.__version__,
            }
            self.save(name, key, data)
        return data

    def load(self, name: str, key: str) -> xr.Dataset | None:
        """What was kept under this key; files that are not what was written are thrown away."""
        for path in self.folder.glob(f"{name}-{key}-*.nc") if self.folder else ():
            if path.stem.endswith(_hash(path.read_bytes())):
                with xr.open_dataset(path, engine="h5netcdf") as data:
                    return (
                        data.load().drop_encoding()
                    )  # which would cut texts that are joined later
            path.unlink()
        return None

    def save(self, name: str, key: str, data: xr.Dataset) -> None:
        """Write beside, then move into place; the checksum in the name tells a whole file from a broken one."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            part = self.folder / f".{name}-{os.getpid()}.part"
            data.to_netcdf(part, engine="h5netcdf")
            part.replace(self.folder / f"{name}-{key}-{_hash(part.read_bytes())}.nc")


def start_worker(threads: int) -> None:
    """Keep a process to its share of the cores, and end it with the parent, however that ends."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)  # of libraries that are loaded later
    threadpool_limits(threads)
    tqdm.set_lock(
        threading.RLock()
    )  # its own, between processes, would outlive a worker that is killed
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def recorded(job: Callable[[], xr.Dataset]) -> xr.Dataset:
    """A job's data set, with the warnings raised on the way among its attributes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", infocap.errors.DataWarning)
        data = job()
    data.attrs["warnings"] = json.dumps(list(dict.fromkeys(str(one.message) for one in caught)))
    return data


def digest(*parts: Any) -> str:
    """A key of plain data, of infocap's version and of its code."""
    return _hash(json.dumps([infocap.__version__, _code(), parts], sort_keys=True).encode())


@functools.cache
def _code() -> str:
    """Changes whenever a number may."""
    return _hash(
        b"".join(path.read_bytes() for path in sorted(Path(infocap.__file__).parent.rglob("*.py")))
    )


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
