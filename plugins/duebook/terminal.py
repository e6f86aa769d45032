"""What a person sees: every report of the command line, from its JSON document.

On a terminal text is coloured and wrapped to its width, and operation keys stand alone on a line
that is never cut, so that they can be copied. Elsewhere (a pipe, a file) every fact is one plain
line of any length. Amounts are shown here, in exact major units; logs never have them.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

from duebook.domain.money import UnknownCurrencyError, exponent, format_money
from duebook.services.story import span

Document = Mapping[str, Any]
ProgressReport = Callable[[str, int, int | None], None]

GOOD, BAD, CARE, DIM, BOLD = "green", "red", "yellow", "dim", "bold"
BATCH_LIMIT: Final = 20
ROW_LIMIT: Final = 20
LINE_SECONDS: Final = 5.0
_NARROWEST: Final = 24
# Money, durations, instants and commands are not torn apart at the end of a line.
_TOGETHER: Final = re.compile(
    r"\b[A-Z]{3} -?[0-9][0-9,.]*|\b[0-9]+ (?:d|h|min|s)\b(?: [0-9]+ (?:h|min|s)\b)?"
    r"|\b[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{5,8}(?: UTC)?|`[^`]{1,40}`"
    r"|\b(?:row|line|run|attempt|batch|transition) [0-9]+\b|\b[\w-]{1,30} v[0-9]+\b"
)
_LONG_COMMAND: Final = re.compile(r"`([^`]{41,})`")
_GLUE: Final = "\ue000"
_ASCII: Final = str.maketrans({"→": "->", "·": "-", "…": "...", "✓": "+", "✗": "x", "•": "*"})
_LABELS: Final = {
    "booked": "booked",
    "run_started": "started",
    "file": "file",
    "quarantined": "quarantined",
    "entry": "evidence",
    "ledger_change": "ledger change",
    "discrepancy_opened": "difference",
    "discrepancy_closed": "difference",
    "intent": "promised",
    "proposed": "proposed",
    "request": "request",
    "attempt": "attempt",
    "decision": "decision",
    "result": "result",
    "delay": "later",
    "held": "held",
    "in_doubt": "in doubt",
    "outcome": "outcome",
    "run_committed": "committed",
    "due": "due",
}
_EVENT_STYLES: Final = {
    "outcome": BOLD,
    "held": CARE,
    "in_doubt": BAD,
    "quarantined": CARE,
    "discrepancy_opened": CARE,
    "due": "cyan",
}
_ENTRY_COUNTS: Final = ("entries_new", "entries_changed", "entries_unchanged")
_BATCH_STYLES: Final = {"closed": GOOD, "carried": GOOD, "not_closed": BAD}
_PROBLEM_FIRST: Final = ("not_closed", "not_itemisable", "open", "carried", "closed")


# ---- reports ---------------------------------------------------------------------------------


def render_reconcile(document: Document, console: Console) -> None:
    """A run: what came in, what it changed, which batches close and what differs."""
    _line(console, _reconcile_title(document), style=BOLD)
    if document.get("dry_run"):
        _line(console, "dry run: nothing was written", style=CARE)
    _blank(console)
    counts = (
        ("entries", (*_ENTRY_COUNTS, "entries_stale", "quarantined")),
        ("payments", ("matched", "pending")),
        ("changes", ("ledger_changes", "intents")),
    )
    for label, names in counts:
        parts = [
            f"{document[name]:,} {name.removeprefix('entries_').replace('_', ' ')}"
            for name in names
            if name in document and (document[name] or name != "entries_stale")
        ]
        _fields(console, label, ", ".join(parts))
    differences = document.get("discrepancies") or {}
    text = ", ".join(f"{kind} {count:,}" for kind, count in differences.items() if count)
    _fields(console, "differ", text or "nothing", style=CARE if text else GOOD)
    unknown = document.get("unknown_types") or {}
    if unknown:
        text = ", ".join(f"{name} {count:,}" for name, count in unknown.items())
        _fields(console, "unknown", f"kept as type other: {text}", style=CARE)
    _file_checks(document.get("file_checks") or [], console)
    _batches(document.get("batches") or [], document.get("provider"), console)
    _rejects(document, console)
    if document.get("quarantined") and document.get("run_id") and not _rejected(document):
        _blank(console)
        text = f"rows in quarantine: `duebook explain run:{document['run_id']}` says which and why"
        _hanging(console, "", Text(text, CARE))


def _file_checks(checks: Sequence[Document], console: Console) -> None:
    """Files whose own totals are not what their rows come to, or that lack them."""
    for file in dict.fromkeys(each["file"] for each in checks):
        names = dict.fromkeys(
            " ".join(part for part in (each["currency"], each["check_name"]) if part)
            for each in checks
            if each["file"] == file
        )
        text = f"{file} disagrees with its own totals: {', '.join(names)}"
        if list(names) == ["section_footer"]:
            text = f"{file} was cut: its totals are missing"
        _fields(console, "file", text, style=CARE)


def _reconcile_title(document: Document) -> str:
    account = document.get("provider_account") or document.get("account")
    run = f"run {document['run_id']}" if document.get("run_id") else "no run"
    parts = [account, run, f"mode {document['mode']}" if document.get("mode") else None]
    if document.get("as_of"):
        parts.append(f"as of {_moment(document['as_of'])}")
    return " · ".join(str(part) for part in parts if part)


def _batches(batches: Sequence[Document], provider: str | None, console: Console) -> None:
    if not batches:
        return
    worst = sorted(batches, key=lambda each: _rank(each["status"]))
    rows = [
        (
            each["batch_ref"],
            _money(each["sum_minor"], each["currency"], provider),
            _money(each["payout_minor"], each["currency"], provider),
            _money(each["difference_minor"], each["currency"], provider),
            Text(each["status"], _BATCH_STYLES.get(each["status"], CARE)),
        )
        for each in worst[:BATCH_LIMIT]
    ]
    _blank(console)
    _table(console, ("batch", "sum", "payout", "difference", "status"), rows, right={1, 2, 3})
    if len(batches) > BATCH_LIMIT:
        rest: dict[str, int] = {}
        for each in worst[BATCH_LIMIT:]:
            rest[each["status"]] = rest.get(each["status"], 0) + 1
        text = ", ".join(f"{count:,} {status}" for status, count in rest.items())
        _line(console, f"and {len(batches) - BATCH_LIMIT:,} more: {text} (--json shows all)")


def _rank(status: str) -> int:
    return _PROBLEM_FIRST.index(status) if status in _PROBLEM_FIRST else 0


def render_import(document: Document, console: Console) -> None:
    """An import: how many rows did what, and each row that could not be read."""
    name = document.get("file") or document.get("file_name")
    if name:
        _line(console, str(name), style=BOLD)
    counts = [
        f"{value:,} {key.replace('_', ' ')}"
        for key, value in document.items()
        if isinstance(value, int) and not isinstance(value, bool) and key != "exit_code"
    ]
    _line(console, ", ".join(counts) or "nothing to do")
    _rejects(document, console)


def _rejects(document: Document, console: Console) -> None:
    rows = _rejected(document)
    if not rows:
        return
    _blank(console)
    _line(console, "Rows in quarantine", style=CARE)
    for row in rows[:ROW_LIMIT]:
        place = str(row.get("file_name") or row.get("file") or row.get("source") or "")
        line = row.get("line_no", row.get("line", row.get("position")))
        column = row.get("column_name", row.get("column"))
        head = f"{place} line {line}" + (f", column {column}" if column else "")
        text = f"{head.strip()}: {row.get('reason')}"
        if row.get("value") is not None:
            text += f", read {row['value']!r}"
        if row.get("expected"):
            text += f", expected {row['expected']}"
        _hanging(console, "  ", Text(text))
    total = max(len(rows), int(document.get("quarantined") or 0))
    if total > ROW_LIMIT:
        _line(console, f"  and {total - ROW_LIMIT:,} more, in duebook.quarantined_row")


def _rejected(document: Document) -> Sequence[Document]:
    names = ("faults", "quarantined_rows", "rejects")
    return next((document[name] for name in names if document.get(name)), ())


def render_sweep(document: Document, console: Console) -> None:
    """A sweep: what was claimed and how each ended."""
    ends = ("sent", "done", "deferred", "expired", "held", "failed", "unknown", "late")
    claimed = document.get("claimed", 0)
    parts = [f"{document[name]:,} {name}" for name in ends if document.get(name)]
    verdict = ", ".join(parts) or ("nothing was due" if not claimed else "no result yet")
    _line(console, f"{claimed:,} claimed: {verdict}", style=BOLD)
    backlog = document.get("backlog") or 0
    oldest = document.get("oldest_due_s")
    if backlog:
        age = f", the oldest for {_seconds(oldest)}" if oldest is not None else ""
        _line(console, f"{backlog:,} still due{age}", style=CARE)
    if document.get("unknown"):
        text = "in doubt: the provider may have accepted them; see `duebook status`"
        _line(console, text, style=BAD)
    if document.get("stale_starts"):
        _line(console, f"{document['stale_starts']:,} not started: their window was over", CARE)
    back = [
        f"{document[name]:,} {text}"
        for name, text in (
            ("rescued", "rescued from lapsed batches"),
            ("released", "released from held"),
            ("set_aside", "set aside"),
            ("occurrences", "dates of schedules written"),
        )
        if document.get(name)
    ]
    if back:
        _line(console, ", ".join(back))
    if document.get("calendar"):
        _hanging(console, "", Text(document["calendar"], BAD))
    if document.get("refusal"):
        _hanging(console, "", Text(f"nothing was sent: {document['refusal']}", BAD))
    if document.get("paused"):
        _line(console, f"paused by incident {document['paused']}: nothing is claimed", CARE)


def render_status(document: Document, console: Console) -> None:
    """How everything stands, and what needs a person."""
    environment = document["environment"]
    name = environment["environment"] or "never accepted"
    test = ", a test database" if environment["is_test"] else ""
    _line(console, f"{name}{test} · {_moment(document['now'])}", style=BOLD)
    _blank(console)
    _accounts(document["provider_accounts"], console)
    _places(document, console)
    for batch in document["batches"]:
        state = " lapsed" if batch["is_lapsed"] else ""
        passed = f"{batch['sender']}: {batch['mark']:,} of {batch['size']:,} passed"
        body = Text.assemble(passed, (state, BAD))
        _fields(console, f"batch {batch['batch_id']}", body)
    dags = document["dags"]
    if dags is None:
        _fields(console, "DAGs", f"not known: {document['dags_unknown_because']}", style=DIM)
    else:
        paused = [dag for dag, is_paused in dags.items() if is_paused]
        text = f"{len(dags)} known, " + (
            f"paused: {', '.join(paused)}" if paused else "none paused"
        )
        _fields(console, "DAGs", text, style=CARE if paused else "")
    _needs(document["needs"], console)


def _accounts(accounts: Sequence[Document], console: Console) -> None:
    rows = []
    for each in accounts:
        fresh = "never" if each["freshness_s"] is None else f"{_seconds(each['freshness_s'])} ago"
        rows.append(
            (
                each["provider_account"],
                each["mode"],
                f"{each['last_run_id']}" if each["last_run_id"] else "none",
                Text(fresh, CARE if each["is_stale"] else ""),
                _count(each["discrepancy_count"]),
                _count(each["batches_not_closed"]),
                _count(each["quarantined"]),
            )
        )
    if not rows:
        _line(console, "no provider account is applied yet", style=CARE)
        return
    header = ("account", "mode", "run", "as of", "differ", "not closed", "quarantined")
    _table(console, header, rows, right={2, 4, 5, 6})


def _places(document: Document, console: Console) -> None:
    intents = document["intents"]
    about = "about " if intents.get("is_ended_estimated") else ""
    parts = [
        f"{intents['proposed']:,} proposed",
        f"{intents['scheduled']:,} scheduled",
        f"{intents['enqueued']:,} enqueued",
        f"{intents['unknown']:,} in doubt",
        f"{intents['held']:,} held",
        f"{about}{intents['ended']:,} ended",
    ]
    _blank(console)
    _fields(console, "notices", ", ".join(parts))
    if document["backlog"]:
        text = f"{document['backlog']:,} due, the oldest for {_seconds(document['oldest_due_s'])}"
        _fields(console, "backlog", text, style=CARE)
    elif document["next_due_at"]:
        _fields(console, "next due", _moment(document["next_due_at"]))
    if document["events"]["pending"]:
        _fields(console, "events", f"{document['events']['pending']:,} received, not read yet")
    holds = document["holds"]
    if holds["open"] or holds["unswept"]:
        late = f", {holds['unswept']:,} expired and not recorded yet" if holds["unswept"] else ""
        _fields(console, "holds", f"{holds['open']:,} open{late}")
    claimed = document.get("last_claim_at")
    _fields(console, "last claim", _moment(claimed) if claimed else "never")


def _needs(needs: Sequence[Document], console: Console) -> None:
    _blank(console)
    if not needs:
        _line(console, "✓ nothing needs a person", style=GOOD)
        return
    _line(console, "Needs a person", style=CARE)
    for need in needs:
        _hanging(console, "• ", Text(need["what"]))
        _remedy(console, need["do"])


def render_explain(document: Document, console: Console) -> None:
    """A story: for each match what it is, why something was or was not sent, its time line."""
    matches = document["matches"]
    if len(matches) > 1:
        _line(console, f"{document['subject']} is {len(matches)} things:", style=BOLD)
        for match in matches:
            _hanging(console, "• ", Text(match["title"]))
    for match in matches:
        _match(match, document, console, is_alone=len(matches) == 1)


def _match(match: Document, document: Document, console: Console, *, is_alone: bool) -> None:
    if not is_alone:
        _blank(console)
    _hanging(console, "", Text(match["title"], BOLD))
    for line in match["summary"]:
        label, gap, rest = line.partition("  ")
        if gap:
            _hanging(console, f"  {label:<9}", Text(rest.strip()))
        else:
            _hanging(console, "  ", Text(line))
    _blank(console)
    answers = match["answers"]
    was_sent = any(answer["was_sent"] for answer in answers)
    was_not = any(not answer["was_sent"] for answer in answers)
    title = "What was sent, and what was not" if was_not else "What was sent"
    _line(console, title if was_sent else "Why nothing was sent", style=BOLD)
    several = len(match["payment_ids"]) > 1
    for answer in answers:
        mark, style = ("✓ ", GOOD) if answer["was_sent"] else ("• ", CARE)
        name = f"{answer['payment_id']}: " if several and answer["payment_id"] else ""
        _hanging(console, Text(f"  {mark}", style), Text(name + answer["text"]))
        if answer["operation_key"]:
            _key(console, answer["operation_key"])
    _blank(console)
    _time_line(match["events"], document["told_at"], console, several=several)
    for note in match["notes"]:
        _hanging(console, "", Text(note, DIM))


def _time_line(
    events: Sequence[Document], told_at: str, console: Console, *, several: bool
) -> None:
    day, is_future = "", False
    for event in events:
        if event["at"] > told_at and not is_future:
            is_future = True
            _line(console, f"{_moment(told_at)} (now)", style=DIM)
            day = ""
        name = f"{event['payment_id']}: " if several and event.get("payment_id") else ""
        text = Text(name + event["text"], _EVENT_STYLES.get(event["event"], ""))
        label = f"{_LABELS.get(event['event'], event['event']):<13}"
        date, clock = event["at"][:10], event["at"][11:19]
        if not console.is_terminal:
            _line(console, f"{date} {clock}Z  {label}  {text.plain}")
            continue
        if date != day:
            day = date
            _line(console, f"{date} UTC", style=DIM)
        head = Text.assemble((f"  {clock}  ", DIM), (f"{label}  ", "cyan"))
        _hanging(console, head, text)


def render_doctor(document: Document, console: Console) -> None:
    """What was looked at; what is not well has its remedy below it."""
    findings = document["findings"]
    width = max((len(each["name"]) for each in findings), default=0)
    for each in findings:
        mark = ("✓ ", GOOD) if each["ok"] else ("✗ ", BAD)
        name = (f"{each['name']:<{width}}  ", "" if each["ok"] else BOLD)
        _hanging(console, Text.assemble(mark, name), Text(each["detail"]))
        if each["remedy"]:
            _remedy(console, each["remedy"])
    bad = sum(1 for each in findings if not each["ok"])
    _blank(console)
    if bad:
        _line(console, f"{bad} of {len(findings)} need a person", style=BAD)
    else:
        _line(console, f"✓ all {len(findings)} are well", style=GOOD)


def render_check(document: Document, console: Console) -> None:
    """Which invariants do not hold, with the first keys that break each."""
    violations = document["violations"]
    if not violations:
        checked = document.get("checked")
        count = f" ({checked if isinstance(checked, int) else len(checked)})" if checked else ""
        _line(console, f"✓ every invariant holds{count}", style=GOOD)
        return
    for each in violations:
        keys = each["keys"]
        count = each.get("count", len(keys))
        _hanging(console, Text("✗ ", BAD), Text(f"{each['invariant']}: {count:,}"))
        for key in keys[:ROW_LIMIT]:
            _key(console, str(key))
        if count > ROW_LIMIT:
            _line(console, f"    and {count - ROW_LIMIT:,} more (--json shows all it found)")


def render_migrate(document: Document, console: Console) -> None:
    """What a migration did to the database."""
    before, after = document["before"], document["after"]
    applied = [*document["migrations"], *document["objects"]]
    if not applied:
        _line(console, f"✓ already current, at {after}", style=GOOD)
    else:
        moved = f"{before or 'empty'} → {after}" if before != after else f"at {after}"
        count = f"{len(document['migrations'])} migrations, {len(document['objects'])} objects"
        _line(console, f"✓ {moved}: {count}", style=GOOD)
    for notice in document["notices"]:
        _hanging(console, Text("• ", CARE), Text(notice))


def render_apply(document: Document, console: Console) -> None:
    """What of duebook.toml was new, changed or as it was."""
    _tree(document, console)


def render_up(document: Document, console: Console) -> None:
    """Where the local stack listens and how to log in."""
    _tree(document, console)


def render_down(document: Document, console: Console) -> None:
    """What was ended."""
    _tree(document, console)


# ---- progress --------------------------------------------------------------------------------


@contextlib.contextmanager
def progress(console: Console) -> Iterator[ProgressReport]:
    """Shows how far something is: bars on a terminal, a line per stage elsewhere.

    Yields `report(stage, done, total)`; `total` None: not known how much there is.
    """
    if not console.is_terminal:
        yield _line_progress(console)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield show


def _line_progress(console: Console) -> ProgressReport:
    said: dict[str, float] = {}

    def say(stage: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        is_over = total is not None and done >= total
        if stage in said and not is_over and now - said[stage] < LINE_SECONDS:
            return
        said[stage] = now
        of = f" of {total:,}" if total is not None else ""
        _line(console, f"{stage}: {done:,}{of}" if done or total else stage)

    return say


# ---- lines -----------------------------------------------------------------------------------


def _print(console: Console, text: Text) -> None:
    if not console.encoding.lower().startswith("utf"):
        plain = text.plain.translate(_ASCII).encode(console.encoding, "replace")
        text = Text(plain.decode(console.encoding))
    console.print(text, soft_wrap=True, highlight=False)


def _blank(console: Console) -> None:
    console.print()


def _line(console: Console, text: str, style: str = "") -> None:
    _hanging(console, "", Text(text, style))


def _hanging(console: Console, head: str | Text, body: Text) -> None:
    """A head and a body that is wrapped beside it, on a terminal."""
    head = Text(head) if isinstance(head, str) else head
    if not console.is_terminal:
        _print(console, Text.assemble(head, body))
        return
    if console.width - head.cell_len < _NARROWEST:
        stripped = head.copy()
        stripped.rstrip()
        _print(console, stripped)
        head = Text("    ")
    body = body.copy()
    body.plain = _TOGETHER.sub(lambda found: found[0].replace(" ", _GLUE), body.plain)
    for number, line in enumerate(body.wrap(console, console.width - head.cell_len)):
        line.plain = line.plain.replace(_GLUE, " ")
        line.rstrip()
        _print(console, Text.assemble(head if number == 0 else " " * head.cell_len, line))


def _remedy(console: Console, text: str) -> None:
    """What to do; a long command stands alone on its line, so that it can be copied."""
    found = _LONG_COMMAND.search(text)
    if found is None:
        _hanging(console, Text("    → ", DIM), Text(text))
        return
    _hanging(console, Text("    → ", DIM), Text(text[: found.start()].rstrip()))
    _key(console, found[1], indent=6)
    if text[found.end() :].strip(" ,;."):
        _hanging(console, "      ", Text(text[found.end() :].strip(" ,;")))


def _key(console: Console, key: str, indent: int = 4) -> None:
    """A key alone on its line, never wrapped or cut: a terminal wraps it, a copy stays whole."""
    _print(console, Text(" " * indent + key, DIM))


def _fields(console: Console, label: str, value: str | Text, style: str = "") -> None:
    body = Text(value, style) if isinstance(value, str) else value
    _hanging(console, Text(f"{label:<11}", BOLD), body)


def _table(
    console: Console,
    header: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    right: set[int],
) -> None:
    """Aligned columns; where they do not fit the terminal, each row becomes a small block."""
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = [
        max([len(name), *(row[i].cell_len for row in cells)]) for i, name in enumerate(header)
    ]
    if console.is_terminal and sum(widths) + 2 * (len(widths) - 1) > console.width:
        _blocks(console, header, cells)
        return
    titles = [Text(name, BOLD) for name in header]
    for row in [titles, *cells]:
        parts: list[Text | str] = []
        for i, cell in enumerate(row):
            gap = " " * (widths[i] - cell.cell_len)
            parts += [gap, cell, "  "] if i in right else [cell, gap, "  "]
        line = Text.assemble(*parts)
        line.rstrip()
        _print(console, line)


def _blocks(console: Console, header: Sequence[str], rows: Iterable[Sequence[Text]]) -> None:
    label = max(len(name) for name in header)
    for row in rows:
        _hanging(console, "", Text(f"{header[0]} {row[0].plain}", BOLD))
        for name, cell in zip(header[1:], row[1:], strict=True):
            _hanging(console, f"  {name:<{label}}  ", cell)


def _tree(value: Any, console: Console, depth: int = 0) -> None:
    """Any document, as nested labels; lists of plain values stand on one line."""
    indent = "  " * depth
    for key, item in value.items():
        label = str(key).replace("_", " ")
        if isinstance(item, Mapping) and item:
            _line(console, f"{indent}{label}")
            _tree(item, console, depth + 1)
        elif isinstance(item, list) and any(isinstance(each, Mapping) for each in item):
            _line(console, f"{indent}{label}")
            for each in item:
                text = ", ".join(f"{name} {part}" for name, part in each.items())
                _hanging(console, f"{indent}  • ", Text(text))
        else:
            _hanging(console, Text(f"{indent}{label}  ", BOLD), Text(_plain(item)))


def _plain(item: Any) -> str:
    if item is None or item in ([], {}):
        return "none"
    if isinstance(item, list | tuple):
        return ", ".join(str(each) for each in item)
    if isinstance(item, bool):
        return "yes" if item else "no"
    return f"{item:,}" if isinstance(item, int) else str(item)


# ---- values ----------------------------------------------------------------------------------


def _money(minor: int, currency: str, provider: str | None) -> str:
    """Exact major units; a currency that nothing knows stays in minor units and says so."""
    try:
        return format_money(minor, currency, exponent(currency, provider))
    except UnknownCurrencyError:
        return f"{currency} {minor} (minor units)"


def _count(number: int) -> Text:
    return Text(f"{number:,}", CARE if number else "")


def _moment(value: str) -> str:
    """`2026-11-30 02:00:00 UTC` of the ISO text of an instant."""
    return f"{datetime.fromisoformat(value).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _seconds(value: float) -> str:
    return span(timedelta(seconds=int(value)))
