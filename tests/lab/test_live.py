"""The live page: the report of a run in a browser while it is measured, killed, resumed and complete; and nobody else sees it."""

import re
import socket
import subprocess
import sys
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import infocap
from infocap.lab import Plan, SimulatedBench, Store, acquire
from infocap.report import live

PLAN = {
    "n_inputs": 2,
    "max_degree": 3,
    "n_samples": 256,
    "seed": 1,
    "repeat_every": 4,
    "reference_every": 16,
}
BENCH = """
import sys, infocap
from infocap.lab import Plan, SimulatedBench, acquire
system = infocap.systems.RandomFeatures(2, 6, noise=0.02)
bench = SimulatedBench(system, latency_s=float(sys.argv[3]), dropout=0.05, seed=1)
acquire(Plan.load(sys.argv[1]), bench, sys.argv[2], progress=False, wait_s=0.0, retries=20)
"""


@pytest.fixture
def started(tmp_path):
    """Begin or resume an acquisition in a process of its own."""
    Plan(**PLAN, title="Six tanh").save(tmp_path / "plan.toml")
    running = []

    def start(latency_s):
        words = [
            sys.executable,
            "-c",
            BENCH,
            str(tmp_path / "plan.toml"),
            str(tmp_path / "run.db"),
            str(latency_s),
        ]
        running.append(subprocess.Popen(words))
        return running[-1]

    yield start
    for one in running:
        one.kill()
        one.wait()


def stored_rows(path, least):
    """Wait until so many measurements are stored."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with Store(path) as store:
                if len(store) >= least:
                    return
        except infocap.errors.DataError:
            pass  # not begun yet
        time.sleep(0.1)
    pytest.fail(f"fewer than {least} rows after a minute")


def test_a_browser_follows_a_run_that_is_killed_resumed_and_completed(
    browser, started, tmp_path, monkeypatch
):
    monkeypatch.setattr(infocap.lab.report._live, "REFRESH_INTERVAL_S", 0.3)
    path = tmp_path / "run.db"
    problems = []
    run = started(0.05)
    stored_rows(path, 5)
    with live(path, until=1e-6) as address:
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        page.on(
            "request",
            lambda request: problems.append(request.url) if request.url != address else None,
        )
        page.goto(address)
        share = lambda: int(re.match(r"(\d+)", page.locator("#live h2").inner_text())[1])  # noqa: E731
        grows = "least => parseInt(document.querySelector('#live h2').textContent) > least"
        page.locator(".lead").wait_for(
            timeout=60_000
        )  # capacities, as soon as there are enough samples
        assert "The device computes" in page.locator(".lead").inner_text()
        page.wait_for_function(
            grows, arg=share() + 4, timeout=60_000
        )  # without loading the page again
        page.fill("#search", "P2")
        page.wait_for_function(grows, arg=share() + 10, timeout=60_000)
        assert (
            page.input_value("#search") == "P2"
        )  # what was typed stays, also when there is a new result
        assert all("P2" in row for row in page.locator("#rows tr").all_inner_texts())
        page.hover('[data-degree="1"][data-kind="1"]')
        assert "Degree 1" in page.locator("#tip").inner_text()
        run.kill()
        run.wait()
        killed = "The acquisition was killed or has crashed: look at the device"
        page.locator(".warned .advice", has_text=killed).wait_for(
            timeout=20_000
        )  # sooner than silence would tell
        assert re.search(
            r"retries\s+\d+, because the instrument failed",
            page.locator("#live").inner_text(),
        )
        started(0.0)
        page.locator(".fine .advice").wait_for(timeout=60_000)
        page.get_by_text("Complete: all that was planned is stored.").wait_for(timeout=60_000)
        assert page.locator("#live h2").inner_text() == "100 % measured"
        said = page.inner_text("body").replace("\xa0", " ")
        for words in (
            "Growth with the number of samples",
            "Drift of the reference",
            "256/256 samples",
        ):
            assert words in said
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        now = infocap.lab.status(path)
        shown = infocap.lab.report._html.with_error(
            now.result.total, now.result.total_standard_error
        )
        assert shown.replace("\xa0", " ") in said
        assert problems == []
    page.locator("#unanswered").wait_for(timeout=60_000)
    assert "does not answer any more" in page.locator("#unanswered").inner_text()
    assert "The device computes" in page.locator(".lead").inner_text()  # what was there stays
    page.close()


@pytest.fixture
def complete(tmp_path):
    acquire(Plan(**PLAN), SimulatedBench(lambda u: u), tmp_path / "run.db", progress=False)
    return tmp_path / "run.db"


def test_only_who_knows_the_token_gets_an_answer(complete):
    with live(complete) as address:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/", address)
        with urlopen(address) as answer:
            page = answer.read().decode()
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
        home = address.rsplit("/", 2)[0]
        for wrong in ("/", "/x/", f"/{address.split('/')[3][:-1]}/", f"/{address.split('/')[3]}"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(home + wrong)
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page).group(1)
    assert policy.endswith("connect-src &#x27;self&#x27;")
    assert "connect-src" not in infocap.report.page(infocap.lab.status(complete).result)
    with live(complete) as other:
        assert other.split("/")[3] != address.split("/")[3]


def test_another_host_gets_no_answer_and_no_page_may_frame_this_one(complete):
    """A page elsewhere whose name leads to this machine, by DNS rebinding, names itself as the host."""
    with live(complete) as address:
        answer = urlopen(address)
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        for host in ("example.org", "localhost", "127.0.0.1"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(Request(address, headers={"Host": host}))


def test_a_connection_that_says_nothing_is_closed(complete, monkeypatch):
    monkeypatch.setattr("infocap.lab.report._live.REQUEST_TIMEOUT_S", 0.2)
    with live(complete) as address:
        port = int(address.split(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
            slow.sendall(b"GET / HT")
            assert slow.recv(100) == b""  # closed by the server


def test_a_page_is_computed_again_only_when_there_is_a_new_result(complete, monkeypatch):
    calls = []
    page_body = infocap.lab.report._live.page_body

    def counted_body(*arguments):
        calls.append(arguments)
        return page_body(*arguments)

    monkeypatch.setattr(infocap.lab.report._live, "page_body", counted_body)
    with live(complete) as address:
        pages = [urlopen(address).read() for _ in range(3)]
    assert len(calls) == 1
    assert b"The device computes" in pages[-1]


def test_a_store_that_disappears_is_told_and_what_was_known_stays(complete):
    with live(complete) as address:
        urlopen(address).read()
        complete.unlink()
        page = urlopen(address).read().decode()
    assert "run.db does not exist." in page
    assert "warned" in re.search(r'id="live" class="(.*?)"', page).group(1)
    assert "The device computes" in page


def test_the_first_repeats_are_no_reason_to_tell_nothing(tmp_path):
    """A few repeats cannot tell the noise of six readouts; the capacities need none."""
    device = infocap.systems.RandomFeatures(2, 6, noise=0.02)
    now = None
    before = None
    with Store(tmp_path / "run.db", Plan(**PLAN)) as store:
        for number, one in enumerate(list(store.remaining())[:130]):
            store.record(one.number, device(one.u[None], seed=number)[0], one.kind)
            if number >= 20 and (one.kind == "repeat" or number % 10 == 0):
                now = infocap.lab.status(store.path) if now is None else now.refreshed()
                assert now.result is not None, now.problem
                before = now.result if now.result.noise_limited_total is None else before
    assert before is not None
    assert now.result.noise_limited_total is not None  # since there are enough


def test_what_cannot_be_watched_is_refused_at_once(tmp_path):
    with (
        pytest.raises(infocap.errors.DataError, match="does not exist"),
        live(tmp_path / "none.db"),
    ):
        pass


def test_a_terminal_is_watched_without_matplotlib(complete):
    run = f"from infocap.lab.cli import main; main(['watch', {str(complete)!r}, '--once'], standalone_mode=False)"
    code = f"import sys; {run}; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.endswith("all that was planned is stored.\nFalse\n")


def test_the_command_tells_the_address_and_ends_with_ctrl_c(complete):
    import signal

    words = [
        sys.executable,
        "-c",
        "from infocap.lab.cli import run; run()",
        "watch",
        str(complete),
        "--web",
    ]
    watching = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        address = watching.stdout.readline().split()[-1]
        assert b"100 % measured" in urlopen(address).read()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=30) == 0
    finally:
        watching.kill()
        watching.wait()
        watching.stdout.close()
