"""The report of a run while it is measured: a page served on this machine alone, to whoever knows its address."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock, Thread

from ..._formatting import percent
from ...errors import Check, InfocapError
from ...result._capacity_result import CapacityResult
from ..experiment._status import Status, counts, pace, status
from ._html import Markup, element, filled, plain, together
from ._page import body, embedded, framed

HOST = "127.0.0.1"  # No other machine can ask.
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}
# What the first words of the advice mean for the colour of the page; anything else is a reason to go and look.
TONES = {"go on": "calm", "complete": "fine", "stop now": "fine"}


@contextmanager
def live(
    path: str | Path, *, until: float = 0.5, every_s: float = 2.0, port: int = 0
) -> Iterator[str]:
    """Serve the page of the run in a store, and give its address; the page follows the run by itself.

    The address holds a token that changes every time; without it nothing is answered. A port of 0 is any that is free.
    Everything is computed when a browser asks, so that nobody who does not look costs nothing.

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
    from http.server import (
        BaseHTTPRequestHandler,
        ThreadingHTTPServer,
    )  # slow to import, and rarely wanted

    lock, token, seen = Lock(), secrets.token_urlsafe(16), status(path, until=until)

    def look() -> str:
        nonlocal seen
        problem = ""
        with lock:  # one browser after the other
            try:
                seen = seen.refreshed(until)
            except InfocapError as said:
                problem = str(said)
            title = seen.plan.title or seen.path.name
            report, data = (
                (Markup(), Markup()) if seen.result is None else _report(seen.result, title)
            )
            return framed(
                title, together([progress(seen, every_s, problem), report]), data, live=True
            )

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = secrets.compare_digest(self.path.encode(), f"/{token}/".encode())
            text = look().encode() if known else b"not found"
            with suppress(ConnectionError):  # the browser may have gone meanwhile
                self.send_response(200 if known else 404)
                for name, value in (HEADERS | {"Content-Length": str(len(text))}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Say nothing of requests."""

    with ThreadingHTTPServer((HOST, port), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}/{token}/"
        finally:
            server.shutdown()


@lru_cache(maxsize=1)  # A page is asked for more often than capacities are estimated.
def _report(result: CapacityResult, title: str) -> tuple[Markup, Markup]:
    return body(result, title), embedded(result, title)


def progress(now: Status, every_s: float, problem: str) -> Markup:
    """How a run stands: what is stored, how fast it grows, what went wrong, and what to do."""
    advice = problem or now.advice
    failed = [
        one.found["failures"]
        for one in now.checks
        if isinstance(one, Check) and "failures" in one.found
    ]
    result, share = now.result, now.stored / now.planned
    facts = {"stored": f"{now.stored} of {now.planned}: {counts(now)}", "pace": pace(now)}
    facts["asked again"] = (
        f"{failed[0]} times, because the instrument failed" if failed else "never"
    )
    if result is None:
        facts["capacities"] = f"none yet: {now.problem}"
    elif not result.unreliable and now.width is not None:
        facts["95 % interval of the total"] = f"{plain(now.width)} wide"
    if result is not None and result.drift is not None:
        size = result.drift.size
        facts["drift of the reference"] = (
            f"{percent(size)} of the readouts' spread" if size else "none beyond its noise"
        )
    return filled(
        "live.html",
        share=f"{100 * share:.2f}",
        title=f"{percent(share)} measured",
        tone=next((tone for words, tone in TONES.items() if advice.startswith(words)), "warned"),
        every=every_s,
        advice=advice[:1].upper() + advice[1:],
        facts=together(
            element("div", element("dt", name), element("dd", text)) for name, text in facts.items()
        ),
        time=time.strftime("%H:%M:%S"),
    )
