"""The report of a run while it is measured: a page for this machine, at a secret address."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock, Thread

from ..._formatting import percent
from ...errors import InfocapError
from ...result import CapacityResult
from ..experiment import Status, counts_in_words, pace_in_words, status
from ._html import Markup, element, fill_template, fixed, join
from ._page import embedded_numbers, page_body, whole_page

# The loopback address: no other machine can reach the page.
HOST = "127.0.0.1"
# Seconds after which the page asks for news. A measurement rarely takes less than a tenth of that.
REFRESH_INTERVAL_S = 5.0
# Seconds after which the server looks again whether it is to end.
SHUTDOWN_POLL_S = 0.1
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}
# The colour of the page by the first words of the advice; any other advice is a warning.
TONES = {"go on": "calm", "complete": "fine", "stop now": "fine"}


@contextmanager
def live(path: str | Path, *, until: float = 0.5, port: int = 0) -> Iterator[str]:
    """Serve the page of a run in progress, which updates itself.

    The page is computed on request, so an idle server costs nothing. Its address holds a token that
    changes every time; requests without it are refused.

    Parameters
    ----------
    path
        The store of the run.
    until
        The width of the 95 % interval of the total at which the page advises to stop.
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

    page = _LivePage(path, until)
    token = secrets.token_urlsafe(16)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            authorised = secrets.compare_digest(self.path.encode(), f"/{token}/".encode())
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

    def __init__(self, path: str | Path, until: float) -> None:
        self.path = path
        self.until = until
        self.status = status(path, until=until)
        self.lock = Lock()  # Each request has a thread of its own.

    def html(self) -> str:
        """Return the page as it is now; a store that cannot be read any more is a warning on it."""
        problem = ""
        with self.lock:
            try:
                self.status = self.status.refreshed(self.until)
            except InfocapError as error:
                problem = str(error)
            run = self.status
            title = run.plan.title or run.path.name
            report = numbers = Markup()
            if run.result is not None:
                report, numbers = _report(run.result, title)
            return whole_page(title, join([progress(run, problem), report]), numbers, live=True)


@lru_cache(maxsize=1)
def _report(result: CapacityResult, title: str) -> tuple[Markup, Markup]:
    """Return body and numbers, cached: pages are asked for more often than results change."""
    return page_body(result, title), embedded_numbers(result, title)


def progress(run: Status, problem: str) -> Markup:
    """Return how a run stands: how much is stored, how fast it grows, and what to do."""
    share = run.stored / run.planned
    advice = problem or run.advice
    tones = [tone for beginning, tone in TONES.items() if advice.startswith(beginning)]
    facts = []
    for name, text in _facts(run).items():
        facts.append(element("div", element("dt", name), element("dd", text)))
    return fill_template(
        "live.html",
        share=f"{100 * share:.2f}",
        title=f"{percent(share)} measured",
        tone=tones[0] if tones else "warned",
        every=REFRESH_INTERVAL_S,
        advice=advice[:1].upper() + advice[1:],
        facts=join(facts),
        time=time.strftime("%H:%M:%S"),
    )


def _facts(run: Status) -> dict[str, str]:
    """Return the numbers of a run by name."""
    facts = {
        "stored": f"{run.stored} of {run.planned}: {counts_in_words(run)}",
        "pace": pace_in_words(run),
        "retries": "none",
    }
    for check in run.checks:
        if "failures" in check.found:
            n_failures = check.found["failures"]
            facts["retries"] = f"{n_failures}, because the instrument failed"
            break
    result = run.result
    if result is None:
        facts["capacities"] = f"none yet: {run.problem}"
        return facts
    if not result.unreliable and run.width is not None:
        facts["95 % interval of the total"] = f"{fixed(run.width)} wide"
    if result.drift is not None:
        size = result.drift.size
        drift = f"{percent(size)} of the readouts' spread" if size else "none beyond its noise"
        facts["drift of the reference"] = drift
    return facts
