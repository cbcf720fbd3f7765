"""Write the table of numbers in the software paper, paper/paper.md, from data.

    python tools/fill_paper.py            # write the table
    python tools/fill_paper.py --check    # only say whether it is up to date

Each row names its source: a benchmark, whose tables are in benchmarks/RESULTS.md, or the verdicts
in paper/figures, which `infocap reproduce all` writes. The rest of the paper is written by hand.
"""

import argparse
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "paper" / "paper.md"
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
VERDICTS = ROOT / "paper" / "figures"
BEGIN = "<!-- numbers: begin; written by tools/fill_paper.py -->\n"
END = "<!-- numbers: end -->\n"
# Figures of which only a quick run leaves statements that are not judged.
ALWAYS_JUDGED = ("fig1", "fig4", "fig6", "twin")
# The Journal of Open Source Software asks for papers of about 1000 words.
MAX_WORDS = 1000


@dataclass(frozen=True)
class SummaryRow:
    """A row of the paper's table that comes from the table "In one page" of the benchmarks."""

    question: str  # as the benchmarks' table has it
    words: str  # as the paper has it
    script: str  # which measured it


SUMMARY_ROWS = [
    SummaryRow(
        question="95 % intervals that hold: capacities, totals",
        words="95 % intervals that contain the true value: capacities, totals",
        script="accuracy",
    ),
    SummaryRow(
        question="error over the least possible: capacities, totals (medians)",
        words="Error over the smallest that any estimate can have: capacities, totals (medians)",
        script="accuracy",
    ),
    SummaryRow(
        question="unseen mistakes, new devices: silent without memory, with memory",
        words="New kinds of faults, on new devices, that stay unnoticed: without, with memory",
        script="mistakes",
    ),
    SummaryRow(
        question="clean runs that are accused",
        words="Recordings without a fault that are reported as faulty",
        script="alarms",
    ),
    SummaryRow(
        question="default method on one core, times Algorithm 1",
        words="Time of the default method over that of the published Algorithm 1, one core",
        script="cost",
    ),
    SummaryRow(
        question="11.5 GB on disk under a budget of 1 GB",
        words="Memory used for 11.5 GB of readouts on disk, with a limit of 1 GB",
        script="out_of_core",
    ),
]


def cells(line: str) -> list[str]:
    """Return the cells of one line of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def section(text: str, *headings: str) -> str:
    """Return the text of a section, or of a section in a section, found by how headings begin."""
    for heading in headings:
        level = heading.split(" ")[0]
        start = re.search(rf"^{re.escape(heading)}.*\n", text, flags=re.MULTILINE)
        if start is None:
            raise SystemExit(f"{RESULTS} has no heading that begins with '{heading}'.")
        text = re.split(rf"^#{{1,{len(level)}}} ", text[start.end() :], flags=re.MULTILINE)[0]
    return text


def table(text: str) -> list[dict[str, str]]:
    """Return the rows of the first Markdown table of a text, by the names of its columns.

    Where two columns have the same name, the last one counts.
    """
    lines = [line for line in text.splitlines() if line.startswith("|")]
    names = cells(lines[0])
    return [dict(zip(names, cells(line), strict=True)) for line in lines[2:]]


def summary_rows(results: str) -> list[tuple[str, str, str]]:
    """Return the rows that the benchmarks' page of results sums up."""
    answers = {row["question"]: row["found"] for row in table(section(results, "## In one page"))}
    rows = []
    for row in SUMMARY_ROWS:
        if row.question not in answers:
            raise SystemExit(f"{RESULTS}: the table 'In one page' has no row '{row.question}'.")
        # That page names the machine with two cores; the paper does not compare machines.
        answer = answers[row.question].removesuffix(" on the two-core machine")
        rows.append((row.words, answer, f"`benchmarks/{row.script}.py`"))
    return rows


def memory_rows(results: str) -> list[tuple[str, str, str]]:
    """Return the rows about systems with memory."""
    intervals = table(section(results, "## Sequences (", "### Error bars"))
    shares = [100 * float(row["singles"]) for row in intervals]
    found = table(section(results, "## Explore", "### Known truth"))
    false = [float(row["false"].rstrip("%")) for row in found]
    return [
        (
            f"95 % intervals that contain the true capacity, {len(shares)} systems with memory",
            f"{min(shares):.1f} to {max(shares):.1f} %",
            "`benchmarks/sequences.py`",
        ),
        (
            f"False functions among those found by search, {len(false)} systems with memory",
            f"{min(false):.2g} to {max(false):.2g} %",
            "`benchmarks/explore.py`",
        ),
    ]


def sentence_row() -> tuple[str, str, str]:
    """Return the row about the sentences of the paper whose method infocap implements.

    One sentence may be judged by several criteria. It counts once, and it holds when every
    criterion is met. Criteria that cannot fail, and criteria that something was adjusted to, are
    left out.
    """
    verdicts_of = defaultdict(set)
    for path in sorted(VERDICTS.glob("*.json")):
        lines = json.loads(path.read_text(encoding="utf-8"))
        if path.stem in ALWAYS_JUDGED and any(line["verdict"] == "not judged" for line in lines):
            raise SystemExit(f"{path} is of a quick run; run `infocap reproduce all` in full.")
        for line in lines:
            quotation = line["paper"]
            # A dash stands for our own measurements, "Fig." for a value read from a figure.
            is_sentence = not quotation.startswith("-") and "Fig." not in quotation
            if is_sentence and line["verdict"] in ("agrees", "differs"):
                verdicts_of[quotation].add(line["verdict"])
    n_holding = sum(verdicts == {"agrees"} for verdicts in verdicts_of.values())
    return (
        "Distinct sentences of the paper on the method that hold in simulation with its parameters",
        f"{n_holding} of {len(verdicts_of)}",
        "`infocap reproduce all`",
    )


def numbers() -> str:
    """Return the whole table as Markdown."""
    results = RESULTS.read_text(encoding="utf-8")
    rows = [*summary_rows(results), *memory_rows(results), sentence_row()]
    lines = ["| What was measured | Result | Source |", "|:---|:---|:---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def count_words(text: str) -> int:
    """Count the words of the paper, without its metadata and comments."""
    body = text.split("---\n", 2)[2]
    without_comments = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    return len(re.findall(r"\w[\w'./-]*", without_comments))


def main() -> None:
    """Write the table, or check it."""
    parser = argparse.ArgumentParser(description="Write the numbers of paper/paper.md from data.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if out of date")
    check_only = parser.parse_args().check

    text = PAPER.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    filled = before + BEGIN + "\n" + numbers() + "\n" + END + after
    n_words = count_words(filled)
    if n_words > MAX_WORDS:
        raise SystemExit(f"{PAPER} has {n_words} words; the journal asks for {MAX_WORDS} at most.")
    if check_only and filled != text:
        raise SystemExit(f"The numbers in {PAPER} are not those of the data: run `make paper`.")
    if not check_only:
        PAPER.write_text(filled, encoding="utf-8")
        print(f"Written: {PAPER.relative_to(ROOT)}, {n_words} words")


if __name__ == "__main__":
    main()
