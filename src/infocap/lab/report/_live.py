"""The report of a run while it is measured: a page for this machine, at a secret address."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock, Thread

from ..._formatting import percent
from ..._validation import checks_arguments
from ...errors import InfocapError, ParameterError
from ...result import CapacityResult
from ..experiment import (
    REFRESH_INTERVAL_S,
    Status,
    counts_in_words,
    pace_in_words,
    status,
)
from ._html import Markup, element, fill_template, fixed, join
from ._page import embedded_numbers, page_body, whole_page

# The loopback address: no other machine can reach the page.
HOST = "127.0.0.1"
MAX_PORT = 65_535
# Seconds after which the server looks again whether it is to end.
SHUTDOWN_POLL_S = 0.1
# Seconds for which a connection may say nothing before it is closed.
REQUEST_TIMEOUT_S = 10.0
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    # No other page may show this one in a frame.
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
}
# The colour of the page by the kind of the advice; any other kind is a warning.
TONES = {"complete": "fine", "stop": "fine", "go on": "calm"}
WARNING_TONE = "warned"


@contextmanager
@checks_arguments
def live(
    path: str | Path, *, until: float | None = None, nan_policy: str = "raise", port: int = 0
) -> Iterator[str]:
    """Serve the page of a run in progress, which updates itself.

    The page is computed on request, so an idle server costs nothing. Its address holds a token that
    changes every time; requests without it are refused.

    Parameters
    ----------
    path
        The store of the run.
    until
        The width of the 95 % interval of the total at which the page says that you may stop;
        without it, it never does.
    nan_policy
        What to do with rows in which values are missing, as for `infocap.estimate`.
    port
        The port of the server; 0 takes any that is free.

    Yields
    ------
    str
        The address, for browsers of this machine.

    Examples
    --------
    >>> import tempfile
    >>> from urllib.request import urlopen
    >>> plan = infocap.lab.Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1)
    >>> bench = infocap.lab.SimulatedBench(lambda u: u)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = infocap.lab.acquire(plan, bench, f"{folder}/run.db", progress=False)
    ...     with infocap.report.live(f"{folder}/run.db") as address:
    ...         "all that was planned is stored" in urlopen(address).read().decode()
    True
    """
    # Importing the server takes long, and few users need it.
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    if not 0 <= port <= MAX_PORT:
        raise ParameterError(f"`port={port}` must be from 0, any that is free, to {MAX_PORT}.")
    page = _LivePage(path, until, nan_policy)
    token = secrets.token_urlsafe(16)

    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_TIMEOUT_S  # of the socket: a slow connection is closed

        def do_GET(self) -> None:
            # Another name for this address is that of a page which wants to read this one.
            is_our_host = self.headers.get("Host") == f"{HOST}:{server.server_port}"
            knows_token = secrets.compare_digest(self.path.encode(), f"/{token}/".encode())
            authorised = is_our_host and knows_token
            content = page.html().encode() if authorised else b"not found"
            with suppress(ConnectionError):  # The browser may have gone meanwhile.
                self.send_response(200 if authorised else 404)
                for name, value in HEADERS.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Write nothing about requests to the terminal."""

    with ThreadingHTTPServer((HOST, port), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, args=(SHUTDOWN_POLL_S,), daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}/{token}/"
        finally:
            server.shutdown()


class _LivePage:
    """The page of a run, which remembers the last status that could be read."""

    def __init__(self, path: str | Path, until: float | None, nan_policy: str) -> None:
        self.path = path
        self.until = until
        self.nan_policy = nan_policy
        self.status = status(path, until=until, nan_policy=nan_policy)
        self.lock = Lock()  # Each request has a thread of its own.

    def html(self) -> str:
        """Return the page as it is now; a store that cannot be read any more is a warning on it."""
        problem = ""
        with self.lock:
            try:
                self.status = self.status.refreshed(self.until, self.nan_policy)
            except InfocapError as error:
                problem = str(error)
            current = self.status
            title = current.plan.title or current.path.name
            report = numbers = Markup()
            if current.result is not None and not current.result.nothing_to_show:
                report, numbers = _report(current.result, title)
            body = join([progress(current, problem), report])
            return whole_page(title, body, numbers, live=True)


@lru_cache(maxsize=1)
def _report(result: CapacityResult, title: str) -> tuple[Markup, Markup]:
    """Return body and numbers, cached: pages are asked for more often than results change."""
    return page_body(result, title), embedded_numbers(result, title)


def progress(current: Status, problem: str) -> Markup:
    """Return how a run stands: how much is stored, how fast it grows, and what to do."""
    share = current.stored / current.planned
    if problem:
        advice = problem
        tone = WARNING_TONE
    else:
        advice = current.advice
        tone = TONES.get(current.advice_kind, WARNING_TONE)
    facts = []
    for name, text in _facts(current).items():
        facts.append(element("div", element("dt", name), element("dd", text)))
    return fill_template(
        "live.html",
        share=f"{100 * share:.2f}",
        title=f"{percent(share)} measured",
        tone=tone,
        every=REFRESH_INTERVAL_S,
        advice=advice[:1].upper() + advice[1:],
        facts=join(facts),
        time=time.strftime("%H:%M:%S"),
    )


def _facts(current: Status) -> dict[str, str]:
    """Return the numbers of a run by name."""
    facts = {
        "stored": f"{current.stored} of {current.planned}: {counts_in_words(current)}",
        "pace": pace_in_words(current),
        "retries": "none",
    }
    for check in current.checks:
        if "failures" in check.found:
            n_failures = check.found["failures"]
            facts["retries"] = f"{n_failures}, because the instrument failed"
            break
    result = current.result
    if result is None or result.nothing_to_show:
        reason = current.problem if result is None else result.nothing_to_show
        facts["capacities"] = f"none yet: {reason}"
        return facts
    if not result.unreliable and current.interval_width is not None:
        facts["95 % interval of the total"] = f"{fixed(current.interval_width)} wide"
    if result.drift is not None:
        size = result.drift.size
        drift = f"{percent(size)} of the readouts' spread" if size else "none beyond its noise"
        facts["drift of the reference"] = drift
    return facts
