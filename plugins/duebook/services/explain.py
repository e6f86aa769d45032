"""The story of one thing, from its evidence to its outcome, and why nothing was sent.

Reads Duebook's own database and nothing else: with Airflow's gone, every answer is the same.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.rows import DictRow, dict_row

from duebook.db.sql import query
from duebook.domain.keys import (
    EvidenceKey,
    KeyFormatError,
    ReminderKey,
    ResendKey,
    TransitionKey,
    parse_key,
)
from duebook.errors import InputError
from duebook.services import story_answers, story_events, story_holds, story_schedules
from duebook.services.story import Answer, Event, Match, Money, Story, counted, minute, ordered
from duebook.services.story_answers import Context, PaymentFacts

Connect = Callable[[], psycopg.Connection[Any]]

MATCH_LIMIT: Final = 20
PAYMENT_LIMIT: Final = 20
ROW_LIMIT: Final = 1000
RUN_LIMIT: Final = 25
DATE_LIMIT: Final = 20
_RUN = re.compile(r"run:([0-9]{1,18})", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Named queries on one connection, rows as mappings."""

    connection: psycopg.Connection[Any]

    def rows(self, name: str, **values: Any) -> list[DictRow]:
        with self.connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query(name), values or None).fetchall()

    def row(self, name: str, **values: Any) -> DictRow | None:
        rows = self.rows(name, **values)
        return rows[0] if rows else None


def explain(connect: Connect, subject: str) -> Story:
    """Everything that `subject` can mean, each with its time line and its answers.

    `subject` is an operation key, an account, a payment, a reference or a provider's id, or a run
    (`run:12` or `12`). At most 20 matches, 20 payments of an account and 25 changes of a run are
    told; notes say what was left out. All is read from one snapshot.
    Raises InputError (exit 2) when nothing is known under it.
    """
    subject = subject.strip()
    if not subject or len(subject) > 1000 or "\0" in subject:
        raise InputError("explain: give an operation key, account, payment, reference or run:N")
    with connect() as connection:
        # All reads of one story see one moment.
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        with connection.transaction():
            reader = _Reader(connection)
            context = _context(reader)
            matches = tuple(_matches(reader, context, subject))
    if not matches:
        raise InputError(
            f"explain: nothing is known under {subject!r} (an operation key, account, payment, "
            "reference, hold, schedule, provider's id or run:N)"
        )
    return Story(subject, context.now, matches)


def _context(reader: _Reader) -> Context:
    row = reader.row("read_story_context")
    assert row is not None, "a select without from returns a row"
    exponents = {
        (x["provider"], x["currency"]): x["exponent"] for x in reader.rows("list_exponents")
    }
    return Context(
        now=row["now"],
        environment_refusal=row["environment_refusal"],
        last_claim_at=row["last_claim_at"],
        kinds={x["kind"]: x for x in reader.rows("list_story_kinds")},
        money=Money(exponents),
        pauses=reader.rows("list_story_pauses"),
        sweep_paused_by=row["sweep_paused_by"],
    )


def _matches(reader: _Reader, context: Context, subject: str) -> Iterable[Match]:
    yield from _key_matches(reader, context, subject)
    named: dict[str, Any] = {"account_id": None, "row_limit": MATCH_LIMIT}
    for row in reader.rows("list_story_holds", hold=subject, payment_ids=[], **named):
        yield _hold_match(reader, context, row)
    for row in reader.rows("list_story_schedules", schedule=subject, **named):
        yield _schedule_match(reader, context, row)
    run = _RUN.fullmatch(subject)
    number = run[1] if run else subject if _NUMBER.fullmatch(subject) else None
    values = {
        "subject": subject,
        "run_id": int(number) if number else None,
        "is_run": run is not None,
        "row_limit": MATCH_LIMIT + 1,
    }
    found = reader.rows("find_subjects", **values)
    if not found and not run:
        found = reader.rows("find_provider_references", subject=subject, row_limit=MATCH_LIMIT + 1)
    payments: dict[tuple[str, str], None] = {}
    is_payment = any(row["match_kind"] == "payment" for row in found)
    for row in found[:MATCH_LIMIT]:
        if row["match_kind"] == "run":
            yield _run_match(reader, context, row["run_id"])
        elif row["match_kind"] == "account":
            yield _account_match(reader, context, row["account_id"])
        elif row["payment_id"] is not None:
            payments[row["account_id"], row["payment_id"]] = None
        elif not is_payment:
            # Else the story of the payment that has its reference tells it.
            yield _suspense_match(reader, context, row["provider_account"], row["entry_id"])
    left_out = len(found) > MATCH_LIMIT
    note = (f"more than {MATCH_LIMIT} matches; the others are not shown",) if left_out else ()
    for account_id, payment_id in payments:
        yield _payment_match(reader, context, account_id, payment_id, note)


def _key_matches(reader: _Reader, context: Context, subject: str) -> Iterable[Match]:
    try:
        key = parse_key(subject)
    except KeyFormatError:
        return
    limit = {"row_limit": MATCH_LIMIT}
    if isinstance(key, ReminderKey):
        yield from _reminder_matches(reader, context, key)
        return
    first = key.original if isinstance(key, ResendKey) else key
    payment = first.payment if isinstance(first, EvidenceKey | TransitionKey) else None
    found = (
        reader.rows("find_intents_of_key", operation_key=subject, payment_id=payment, **limit)
        if payment
        else []
    ) or reader.rows("find_intents_of_unnamed_key", operation_key=subject, **limit)
    for row in found:
        yield _intent_match(reader, context, row)
    if found or payment is None:
        return
    values = {"run_id": None, "is_run": False, "subject": payment, **limit}
    for row in reader.rows("find_subjects", **values):
        if row["match_kind"] == "payment" and row["payment_id"] == payment:
            match = _payment_match(reader, context, row["account_id"], payment)
            never = Answer("never_promised", "nothing was ever promised under this key")
            yield _with_answers(match, (never, *match.answers))


def _reminder_matches(reader: _Reader, context: Context, key: ReminderKey) -> Iterable[Match]:
    values = {"schedule": key.schedule, "row_limit": MATCH_LIMIT}
    found = reader.rows("find_intents_of_reminder", operation_key=str(key), **values)
    for row in found:
        yield _intent_match(reader, context, row)
    if not found:
        for row in reader.rows("list_story_schedules", account_id=None, **values):
            match = _schedule_match(reader, context, row)
            yield _with_answers(match, (story_schedules.never_promised(row, key), *match.answers))


def _schedule_match(reader: _Reader, context: Context, row: DictRow) -> Match:
    """A schedule and its newest dates, each with its four facts."""
    account_id = row["account_id"]
    dates = reader.rows(
        "list_story_occurrences",
        account_id=account_id,
        schedule=row["schedule"],
        intent_ids=[],
        row_limit=DATE_LIMIT + 1,
    )
    shown = dates[:DATE_LIMIT]
    intents = reader.rows(
        "list_story_intents",
        account_id=account_id,
        subjects=[],
        intent_ids=[each["intent_id"] for each in shown],
        row_limit=DATE_LIMIT,
    )
    acts = reader.rows(
        "list_story_audit_events",
        account_id=account_id,
        subjects=[f"schedule:{row['schedule']}"],
        row_limit=ROW_LIMIT,
    )
    left_out = f"the newest {DATE_LIMIT} dates are told; ask for another by its operation key"
    return Match(
        match="schedule",
        title=story_schedules.schedule_title(row),
        account_id=account_id,
        payment_ids=(),
        facts=story_schedules.schedule_facts(row, shown),
        summary=tuple(story_schedules.schedule_summary(row, shown)),
        answers=(
            story_schedules.schedule_answer(row, context),
            *(story_answers.intent_answer(each, context) for each in intents),
        ),
        events=ordered(
            [
                *map(story_events.schedule_act, acts),
                *_intent_events(reader, account_id, intents),
            ]
        ),
        notes=(left_out,) if len(dates) > DATE_LIMIT else (),
    )


def _with_answers(match: Match, answers: tuple[Answer, ...]) -> Match:
    return Match(
        match.match, match.title, match.account_id, match.payment_ids, match.facts, match.summary,
        answers, match.events, match.notes,
    )  # fmt: skip


def _payment_match(
    reader: _Reader,
    context: Context,
    account_id: str,
    payment_id: str,
    notes: tuple[str, ...] = (),
) -> Match:
    facts = _load(reader, account_id, [payment_id])[payment_id]
    payment = facts.payment
    return Match(
        match="payment",
        title=f"payment {payment_id} of account {account_id}, reference {payment['reference']}",
        account_id=account_id,
        payment_ids=(payment_id,),
        facts=_payment_facts(payment, context.money),
        summary=tuple(_payment_summary(reader, facts, context)),
        answers=(
            *story_answers.payment_answers(facts, context),
            *_hold_answers(reader, context, account_id, payment_id),
        ),
        events=ordered(list(_payment_events(reader, account_id, [facts], context.money))),
        notes=(*notes, *_cut(facts)),
    )


def _hold_answers(
    reader: _Reader, context: Context, account_id: str, payment_id: str
) -> Iterable[Answer]:
    values = {"account_id": account_id, "payment_ids": [payment_id], "row_limit": ROW_LIMIT}
    for row in reader.rows("list_story_holds", hold=None, **values):
        yield story_holds.hold_answer(row, context)


def _hold_match(reader: _Reader, context: Context, hold: DictRow) -> Match:
    """A hold, the promise of its expiry, and of its refund if there is one."""
    account_id, payment_id = hold["account_id"], hold["payment_id"]
    intents = reader.rows(
        "list_story_intents",
        account_id=account_id,
        subjects=[f"hold:{hold['hold']}"],
        intent_ids=[],
        row_limit=ROW_LIMIT,
    )
    return Match(
        match="hold",
        title=story_holds.hold_title(hold),
        account_id=account_id,
        payment_ids=(payment_id,) if payment_id else (),
        facts=hold,
        summary=(story_holds.hold_summary(hold),),
        answers=(
            story_holds.hold_answer(hold, context),
            *(story_answers.intent_answer(row, context) for row in intents),
        ),
        events=ordered(list(_intent_events(reader, account_id, intents))),
    )


def _intent_match(reader: _Reader, context: Context, found: DictRow) -> Match:
    account_id, payment_id = found["account_id"], found["payment_id"]
    values = {"account_id": account_id, "row_limit": 1}
    intent = reader.rows(
        "list_story_intents", subjects=[], intent_ids=[found["intent_id"]], **values
    )[0]
    loaded = _load(reader, account_id, [payment_id]) if payment_id else {}
    facts = loaded.get(payment_id)
    events = list(_intent_events(reader, account_id, [intent]))
    dates = reader.rows(
        "list_story_occurrences", schedule=None, intent_ids=[found["intent_id"]], **values
    )
    summary = [story_schedules.occurrence_text(each) for each in dates]
    if facts is not None:
        only = PaymentFacts(
            facts.payment,
            facts.entries,
            (),
            facts.changes,
            (),
            facts.discrepancies,
            facts.reassigned,
            facts.reassignments,
        )
        events += _payment_events(reader, account_id, [only], context.money)
        summary += _payment_summary(reader, facts, context)
    return Match(
        match="operation_key",
        title=f"{intent['operation_key']} of account {account_id}",
        account_id=account_id,
        payment_ids=(payment_id,) if payment_id else (),
        facts={
            key: intent[key]
            for key in (
                "operation_key", "kind", "channel", "state", "reason", "notify_at", "due_at",
                "give_up_at", "tries", "claims", "run_id",
            )
        }
        | ({"occurrence": story_schedules.occurrence_facts(dates[0])} if dates else {}),
        summary=tuple(summary),
        answers=(story_answers.intent_answer(intent, context),),
        events=ordered(events),
    )  # fmt: skip


def _account_match(reader: _Reader, context: Context, account_id: str) -> Match:
    account = reader.row("read_story_account", account_id=account_id)
    assert account is not None, "a select without from returns a row"
    listed = reader.rows("list_account_payments", account_id=account_id, row_limit=PAYMENT_LIMIT)
    count = listed[0]["payment_count"] if listed else 0
    loaded = _load(reader, account_id, [row["payment_id"] for row in listed])
    answers = list(story_answers.account_answers(account, count))
    answers += [
        story_schedules.schedule_answer(row, context)
        for row in reader.rows(
            "list_story_schedules", schedule=None, account_id=account_id, row_limit=PAYMENT_LIMIT
        )
    ]
    for facts in loaded.values():
        answers += story_answers.payment_answers(facts, context)
    channels = ", ".join(account["channels"]) or "none"
    notes = [note for facts in loaded.values() for note in _cut(facts)]
    if count > len(listed):
        notes.append(
            f"the newest {len(listed)} of {count} payments are told; ask for one by its id"
        )
    return Match(
        match="account",
        title=f"account {account_id}",
        account_id=account_id,
        payment_ids=tuple(loaded),
        facts=account | {"payment_count": count},
        summary=(
            f"{counted(count, 'payment')}, {counted(account['intent_count'], 'intent')}, channels "
            f"with an address: {channels}",
        ),
        answers=tuple(answers),
        events=ordered(
            list(_payment_events(reader, account_id, list(loaded.values()), context.money))
        ),
        notes=tuple(notes),
    )


def _suspense_match(
    reader: _Reader, context: Context, provider_account: str, entry_id: str
) -> Match:
    values = {"provider_account": provider_account, "row_limit": ROW_LIMIT}
    entries = reader.rows("list_suspense_entries", entry_id=entry_id, payment_refs=[], **values)
    discrepancies = reader.rows(
        "list_story_discrepancies",
        account_id=None,
        payment_ids=[],
        subjects=[f"entry:{entry_id}"],
        **values,
    )
    money = context.money
    events = [story_events.entry(row, money) for row in entries]
    for row in discrepancies:
        events += story_events.discrepancy(row, money)
    return Match(
        match="entry",
        title=f"entry {entry_id} of provider account {provider_account}",
        account_id=None,
        payment_ids=(),
        facts={"provider_account": provider_account, "entry_id": entry_id},
        summary=("claimed by no booked payment",),
        answers=(story_answers.in_suspense(entries[-1]),),
        events=ordered(events),
    )


def _run_match(reader: _Reader, context: Context, run_id: int) -> Match:
    run = reader.row("read_story_run", run_id=run_id)
    assert run is not None, "the run was found a moment ago, in the same snapshot"
    limits = {"run_id": run_id, "row_limit": RUN_LIMIT}
    changes = reader.rows("list_run_changes", **limits)
    quarantine = reader.rows("list_run_quarantine", **limits)
    text = f"{run['scope']} run of {run['provider_account']}, mode {run['mode']}"
    events = [
        Event(run["started_at"], "run_started", f"{text}, by {run['triggered_by']}"),
        Event(run["committed_at"], "run_committed", _run_counts(run)),
        *map(story_events.run_file, reader.rows("list_run_files", **limits)),
        *map(story_events.quarantined, quarantine),
    ]
    for row in changes:
        event = story_events.ledger_change(row, context.money)
        payment = f"{row['account_id']} / {row['payment_id']}: "
        events.append(Event(event.at, event.event, payment + event.text, event.facts))
    notes = [
        f"the first {RUN_LIMIT} of {total} {name} are shown"
        for name, total in (
            ("ledger changes", run["ledger_changes"]),
            ("quarantined rows", run["quarantined"]),
        )
        if total > RUN_LIMIT
    ]
    return Match(
        match="run",
        title=f"run {run_id} of {run['provider_account']}, as of {minute(run['as_of'])}",
        account_id=None,
        payment_ids=(),
        facts=run,
        summary=(f"{text}, {_run_counts(run)}",),
        answers=tuple(_run_answers(reader, run, context)),
        events=ordered(events),
        notes=tuple(notes),
    )


def _run_counts(run: Mapping[str, Any]) -> str:
    return (
        f"entries {run['entries_new']} new, {run['entries_changed']} changed, "
        f"{run['entries_unchanged']} unchanged; {run['quarantined']} quarantined; "
        f"{counted(run['ledger_changes'], 'ledger change')}, {counted(run['intents'], 'intent')}"
    )


def _run_answers(reader: _Reader, run: DictRow, context: Context) -> Iterable[Answer]:
    for row in reader.rows("count_run_intents", run_id=run["run_id"]):
        reason = f" ({row['reason']})" if row["reason"] else ""
        if row["state"] == "proposed":
            decided = f"cohort {row['cohort']}" if row["cohort"] else run["provider_account"]
            reason = f", since {decided} was in mode {row['ownership']}"
        due = f", due {minute(row['first_due_at'])}" if row["state"] == "scheduled" else ""
        yield Answer(
            row["state"],
            f"{row['intent_count']} {row['kind']}: {row['state']}{reason}{due}",
            was_sent=row["state"] in ("sent", "done"),
        )
    silent: dict[tuple[str, str], int] = defaultdict(int)
    for row in reader.rows("list_silent_changes", run_id=run["run_id"]):
        told_by = story_answers.silence(
            story_answers.kinds_of(row),
            run["notify_from"],
            row["evidence_at"],
            context.kinds,
            run["provider_account"],
        )
        silent[told_by] += row["change_count"]
    for (code, why), count in silent.items():
        yield Answer(code, f"{counted(count, 'ledger change')} told nobody: {why}")
    if not run["ledger_changes"]:
        yield Answer("nothing_changed", "no balance and no status changed, so nothing is told")


def _load(reader: _Reader, account_id: str, payment_ids: Sequence[str]) -> dict[str, PaymentFacts]:
    """All rows of some payments of one account, by payment, in the order asked for."""
    values = {"account_id": account_id, "payment_ids": list(payment_ids)}
    limited = {**values, "row_limit": ROW_LIMIT}
    payments = {row["payment_id"]: row for row in reader.rows("list_story_payments", **values)}
    by_payment = {
        name: _grouped(reader.rows(name, **limited))
        for name in ("list_story_entries", "list_story_changes")
    }
    by_payment["list_story_discrepancies"] = _grouped(
        reader.rows("list_story_discrepancies", provider_account=None, subjects=[], **limited)
    )
    by_payment["list_story_intents"] = _grouped(
        reader.rows(
            "list_story_intents",
            account_id=account_id,
            subjects=[f"payment:{each}" for each in payment_ids],
            intent_ids=[],
            row_limit=ROW_LIMIT,
        )
    )
    moves = _reassignments(reader, account_id, by_payment["list_story_entries"])
    suspense = defaultdict(list)
    for row in reader.rows(
        "list_suspense_entries",
        provider_account=None,
        entry_id=None,
        payment_refs=[row["reference"] for row in payments.values()],
        row_limit=ROW_LIMIT,
    ):
        suspense[row["payment_ref"]].append(row)
    return {
        payment_id: PaymentFacts(
            payment=payments[payment_id],
            entries=by_payment["list_story_entries"][payment_id],
            suspense=suspense[payments[payment_id]["reference"]],
            changes=by_payment["list_story_changes"][payment_id],
            intents=by_payment["list_story_intents"][payment_id],
            discrepancies=by_payment["list_story_discrepancies"][payment_id],
            reassigned={
                (row["subject"].split(":", 2)[2], row["detail"].get("run_id"))
                for row in moves[payment_id]
            },
            reassignments=moves[payment_id],
        )
        for payment_id in payment_ids
        if payment_id in payments
    }


def _reassignments(
    reader: _Reader, account_id: str, entries: Mapping[str, Sequence[DictRow]]
) -> dict[str, list[DictRow]]:
    """Entries that came from or went to another payment, by the payment they are of now."""
    owners = {
        f"entry:{row['provider_account']}:{row['entry_id']}": payment_id
        for payment_id, rows in entries.items()
        for row in rows
    }
    found: dict[str, list[DictRow]] = defaultdict(list)
    for row in reader.rows(
        "list_story_audit_events",
        account_id=account_id,
        subjects=list(owners),
        row_limit=ROW_LIMIT,
    ):
        if row["action"] == "reassign_entry":
            found[owners[row["subject"]]].append(row)
    return found


def _grouped(rows: Iterable[DictRow]) -> dict[str, list[DictRow]]:
    grouped: dict[str, list[DictRow]] = defaultdict(list)
    for row in rows:
        grouped[row["payment_id"]].append(row)
    return grouped


def _cut(facts: PaymentFacts) -> Iterable[str]:
    for name in ("entries", "changes", "intents", "discrepancies"):
        if len(getattr(facts, name)) >= ROW_LIMIT:
            yield f"the first {ROW_LIMIT} {name} of {facts.payment['payment_id']} are told"


def _payment_events(
    reader: _Reader, account_id: str, payments: Sequence[PaymentFacts], money: Money
) -> Iterable[Event]:
    for facts in payments:
        yield story_events.booked(facts.payment, money)
        for row in itertools.chain(facts.entries, facts.suspense):
            yield story_events.entry(row, money)
        for row in facts.changes:
            yield story_events.ledger_change(row, money)
        for row in facts.discrepancies:
            yield from story_events.discrepancy(row, money)
        for row in facts.reassignments:
            yield story_events.decision(row)
    intents = [row for facts in payments for row in facts.intents]
    yield from _intent_events(reader, account_id, intents)


def _intent_events(
    reader: _Reader, account_id: str, intents: Sequence[Mapping[str, Any]]
) -> Iterable[Event]:
    if not intents:
        return
    for row in intents:
        yield from story_events.intent(row)
    names = {
        row["intent_id"]: {
            "payment_id": row["payment_id"],
            "operation_key": row["operation_key"],
        }
        for row in intents
    }
    ids = {"account_id": account_id, "intent_ids": list(names), "row_limit": ROW_LIMIT}
    for row in reader.rows("list_story_attempts", **ids):
        for event in story_events.attempt(row):
            yield event.with_facts(names[row["intent_id"]])
    for row in reader.rows("list_story_delays", **ids):
        yield story_events.delay(row).with_facts(names[row["intent_id"]])
    for row in reader.rows("list_story_requests", **ids):
        yield story_events.request(row).with_facts(names[row["intent_id"]])
    by_key = {each["operation_key"]: each for each in names.values()}
    for row in reader.rows(
        "list_story_audit_events",
        account_id=account_id,
        subjects=list(by_key),
        row_limit=ROW_LIMIT,
    ):
        yield story_events.decision(row).with_facts(by_key[row["subject"]])


def _payment_facts(payment: Mapping[str, Any], money: Money) -> dict[str, Any]:
    provider = payment["provider"]
    return {
        "reference": payment["reference"],
        "amount_minor": payment["amount_minor"],
        "amount": money.major(payment["amount_minor"], payment["currency"], provider),
        "currency": payment["currency"],
        "booked_status": payment["booked_status"],
        "expected_at": payment["expected_at"],
        "provider_account": payment["provider_account"],
        "mode": payment["mode"],
        "is_void": payment["is_void"],
    }


def _payment_summary(reader: _Reader, facts: PaymentFacts, context: Context) -> Iterable[str]:
    payment, money = facts.payment, context.money
    amount = money.text(payment["amount_minor"], payment["currency"], payment["provider"])
    account = payment["provider_account"] or "no provider account"
    yield f"booked   {amount}, {payment['booked_status']}, {account}"
    positions = reader.rows(
        "list_story_positions",
        account_id=payment["account_id"],
        payment_ids=[payment["payment_id"]],
    )
    for row in positions:
        sums = [
            f"{label} {money.text(row[f'{name}_minor'], row['currency'], row['provider'])}"
            for name, label in (
                ("captured", "captured"),
                ("refunded", "refunded"),
                ("charged_back", "charged back"),
                ("pending", "announced"),
                ("fee", "fee"),
                ("net", "net"),
            )
            if row[f"{name}_minor"] or name == "captured"
        ]
        yield f"settled  {', '.join(sums)}"
    open_kinds = [row["kind"] for row in facts.discrepancies if row["closed_at"] is None]
    if open_kinds:
        yield f"differs  {', '.join(open_kinds)}"
