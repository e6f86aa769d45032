"""Rows of the database into the events of a time line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from duebook.services.story import Event, Money, counted, deciding, minute, span
from duebook.services.story_catch_up import decision_text
from duebook.services.story_doubts import act_text

Row = Mapping[str, Any]


def booked(row: Row, money: Money) -> Event:
    """A booked payment, as an import last changed it."""
    amount = money.text(row["amount_minor"], row["currency"], row["provider"])
    where = (
        f"to be settled by {row['provider_account']}"
        if row["provider_account"]
        else "routed to no provider account"
    )
    parts = [amount, row["booked_status"], f"expected {minute(row['expected_at'])}", where]
    if row["booked_version"] > 1:
        parts.append(f"version {row['booked_version']} of the books")
    if row["is_void"]:
        parts.append("void")
    return Event(
        row["imported_at"],
        "booked",
        ", ".join(parts),
        {
            "payment_id": row["payment_id"],
            "reference": row["reference"],
            "amount_minor": row["amount_minor"],
            "amount": money.major(row["amount_minor"], row["currency"], row["provider"]),
            "currency": row["currency"],
            "expected_at": row["expected_at"],
            "provider_account": row["provider_account"],
            "booked_version": row["booked_version"],
        },
    )


def entry(row: Row, money: Money) -> Event:
    """One version of one settlement entry, with the file and line it was read from."""
    provider = row["provider"]
    gross = money.text(row["gross_minor"], row["currency"], provider)
    net = money.text(row["net_minor"], row["net_currency"], provider)
    parts = [
        f"{row['entry_type']} {row['entry_id']} v{row['version']}",
        f"gross {gross}",
        f"net {net}",
        row["entry_status"],
    ]
    if row["batch_ref"]:
        parts.append(f"batch {row['batch_ref']}")
    if not row["is_current_when_stored"]:
        parts.append("told by an older source: kept, not current")
    source = source_of(row)
    return Event(
        row["stored_at"],
        "entry",
        f"{', '.join(parts)} ({source}, run {row['run_id']})",
        {
            key: row[key]
            for key in (
                "payment_id", "provider_account", "entry_id", "version", "is_current",
                "entry_type", "provider_type", "batch_ref", "gross_minor", "fee_minor",
                "net_minor", "currency", "net_currency", "entry_status", "occurred_at",
                "source", "line_no", "run_id",
            )
        }
        | {"gross": money.major(row["gross_minor"], row["currency"], provider)},
    )  # fmt: skip


def source_of(row: Row) -> str:
    """Where a row was read: file and line, or the API of a provider account."""
    if row["source"] == "api":
        return f"API of {row['provider_account']}, row {row['line_no']}"
    return f"{row['source']} line {row['line_no']}"


def ledger_change(row: Row, money: Money) -> Event:
    """What one run changed of one payment, before and after."""
    if row["change_kind"] == "balance":
        text = "; ".join(differences(row, money))
    else:
        text = (
            "settlement is missing" if row["change_kind"] == "missing" else "is missing no more"
        ) + f" (transition {row['transition_no']} of the payment)"
    by = f"{row['provider_account']}, run {row['run_id']}"
    if row["entry_id"]:
        by += f", by {row['entry_id']} v{row['entry_version']}"
    amounts = {
        f"{side}_{name}_minor": row[f"{side}_{name}_minor"]
        for side in ("before", "after")
        for name in ("captured", "refunded", "charged_back")
    }
    return Event(
        row["committed_at"],
        "ledger_change",
        f"{text} ({by})",
        amounts
        | {
            key: row[key]
            for key in (
                "account_id", "payment_id", "change_id", "change_kind", "before_status",
                "after_status", "currency", "entry_id", "entry_version", "evidence_at",
                "provider_account", "run_id",
            )
        },
    )  # fmt: skip


def differences(row: Row, money: Money) -> Iterable[str]:
    """`pending → settled`, `captured EUR 0.00 → EUR 1,234.50`: only what differs."""
    if row["before_status"] != row["after_status"]:
        yield f"{row['before_status']} → {row['after_status']}"
    for name, label in (
        ("captured", "captured"),
        ("refunded", "refunded"),
        ("charged_back", "charged back"),
    ):
        before, after = row[f"before_{name}_minor"], row[f"after_{name}_minor"]
        if before != after:
            yield (
                f"{label} {money.text(before, row['currency'], row['provider'])} → "
                f"{money.text(after, row['currency'], row['provider'])}"
            )


def discrepancy(row: Row, money: Money) -> Iterable[Event]:
    """The opening of a discrepancy, and its closing when it is gone."""
    sides = []
    for label, minor in (("provider", row["provider_minor"]), ("books", row["ledger_minor"])):
        if minor is not None and row["currency"]:
            sides.append(f"{label} {money.text(minor, row['currency'], row['provider'])}")
    text = row["kind"]
    if sides:
        text += f": {', '.join(sides)}"
    if row["detail"]:
        text += f" ({row['detail']})"
    facts = {
        key: row[key]
        for key in (
            "payment_id", "provider_account", "kind", "subject", "provider_minor",
            "ledger_minor", "currency", "status", "times_opened",
        )
    }  # fmt: skip
    again = f", for the {row['times_opened']}th time" if row["times_opened"] > 3 else ""
    again = {2: ", again", 3: ", for the third time"}.get(row["times_opened"], again)
    yield Event(
        row["opened_at"] or row["first_seen_at"],
        "discrepancy_opened",
        f"{text} ({row['provider_account']}, run {row['opened_run_id']}){again}",
        facts | {"run_id": row["opened_run_id"]},
    )
    if row["closed_at"] is not None:
        yield Event(
            row["closed_at"],
            "discrepancy_closed",
            f"{row['kind']} is gone ({row['provider_account']}, run {row['last_run_id']})",
            facts | {"run_id": row["last_run_id"]},
        )


def intent(row: Row) -> Iterable[Event]:
    """The promise, and what its place says now: proposed, held, in doubt, ended, or due later."""
    facts = {
        key: row[key]
        for key in ("payment_id", "intent_id", "operation_key", "kind", "channel", "state")
    }
    yield Event(
        row["created_at"],
        "intent",
        f"{row['kind']} by {row['channel']}, due {due_text(row)}",
        facts | {"notify_at": row["notify_at"], "give_up_at": row["give_up_at"]},
    )
    if row["state"] == "proposed":
        text = f"stays a proposal: {deciding(row)} was in mode {row['ownership']}"
        yield Event(row["since"], "proposed", text, facts)
    elif row["state"] == "held":
        text = f"held: {row['reason']}" + (f" ({row['detail']})" if row["detail"] else "")
        yield Event(row["since"], "held", text, facts | {"cause": row["reason"]})
    elif row["state"] == "unknown":
        text = f"in doubt: {row['reason']}; the provider may have accepted it"
        yield Event(row["since"], "in_doubt", text, facts | {"cause": row["reason"]})
    elif row["state"] == "scheduled":
        text = f"{row['kind']} becomes due; too late from {minute(row['give_up_at'])}"
        yield Event(row["due_at"], "due", text, facts | {"give_up_at": row["give_up_at"]})
    elif row["ended_at"] is not None:
        yield outcome(row, facts)


def outcome(row: Row, facts: Row) -> Event:
    """How a key ended."""
    text = str(row["state"])
    if row["reason"]:
        text += f": {row['reason']}"
    if row["provider_message_id"]:
        text += f", message {row['provider_message_id']}"
    if row["ending_attempt_no"]:
        text += f" (attempt {row['ending_attempt_no']})"
    return Event(
        row["ended_at"],
        "outcome",
        f"{row['kind']} {text}",
        {
            **facts,
            "result": row["state"],
            "reason": row["reason"],
            "provider_message_id": row["provider_message_id"],
        },
    )


def due_text(row: Row) -> str:
    """When it was promised for, and by which rule it waits."""
    text = minute(row["notify_at"])
    if row["intended_local"] is not None:
        return f"{text} ({row['intended_local']:%Y-%m-%d %H:%M} {row['zone']})"
    # The promise is counted from the change, and the intent is written a moment after it.
    minutes = round((row["notify_at"] - row["created_at"]).total_seconds() / 60)
    return f"{text} ({span(timedelta(minutes=minutes))} after the change)" if minutes else text


def attempt(row: Row) -> Iterable[Event]:
    """One claim, and its result when there is one."""
    keys = {"intent_id": row["intent_id"], "attempt_no": row["attempt_no"]}
    sender = f" by {row['sender']}" if row["sender"] else ""
    yield Event(
        row["claimed_at"],
        "attempt",
        f"attempt {row['attempt_no']}: claimed{sender} in batch {row['batch_id']}",
        {**keys, "batch_id": row["batch_id"], "sender": row["sender"]},
    )
    if row["result"] is not None:
        yield Event(
            row["finished_at"],
            "result",
            f"attempt {row['attempt_no']}: {result_text(row)}",
            {
                **keys,
                "result": row["result"],
                "reason": row["reason"],
                "provider_code": row["provider_code"],
                "provider_message_id": row["provider_message_id"],
                "is_late": row["is_late"],
            },
        )
    elif row["batch_ended_how"] in ("rescued", "dismantled"):
        yield Event(
            row["batch_ended_at"],
            "result",
            f"attempt {row['attempt_no']}: no result; its batch was {row['batch_ended_how']}",
            {**keys, "result": None, "reason": row["batch_ended_how"]},
        )


def result_text(row: Row) -> str:
    """`deferred: quiet_hours`, `failed: refused (550)`, with `late` said when it was."""
    text = str(row["result"])
    if row["reason"]:
        text += f": {row['reason']}"
    if row["provider_code"]:
        text += f" ({row['provider_code']})"
    return text + (", late: its batch had been rescued" if row["is_late"] else "")


def delay(row: Row) -> Event:
    """A later due time, or one that was computed again."""
    how = {"tzdb": "computed again, due", "edited": "computed again, due", "resolved": "due again,"}
    return Event(
        row["changed_at"],
        "delay",
        f"{how.get(row['reason'], 'due later,')} {minute(row['due_at'])}: {row['reason']}",
        {"intent_id": row["intent_id"], "due_at": row["due_at"], "reason": row["reason"]},
    )


def request(row: Row) -> Event:
    """A wish to end an intent that a sender held."""
    return Event(
        row["requested_at"],
        "request",
        f"{row['request']} asked for by {row['requested_by']}: {row['reason']}",
        {key: row[key] for key in ("intent_id", "request", "reason", "requested_by")},
    )


def decision(row: Row) -> Event:
    """A decision of the gate, or an act of a person."""
    detail = ", ".join(f"{key} {value}" for key, value in sorted(row["detail"].items()))
    text = f"{row['action']} by {row['actor']}"
    if row["action"] == "catch_up":
        text, detail = row["detail"]["verdict"], decision_text(row["detail"])
    elif act := act_text(row):
        text, detail = act, ""
    return Event(
        row["happened_at"],
        "decision",
        f"{text}: {detail}" if detail else text,
        {key: row[key] for key in ("actor", "action", "subject", "detail")},
    )


def schedule_act(row: Row) -> Event:
    """A schedule that was put, edited or cancelled; what changed, by name."""
    before, after = row["detail"].get("before") or {}, row["detail"].get("after") or {}
    changed = [
        f"{key} {before[key]} → {value}"
        for key, value in sorted(after.items())
        if key in before and before[key] != value
    ]
    if row["detail"].get("message_changed"):
        changed.append("its texts")
    if row["detail"].get("reason"):
        changed.append(str(row["detail"]["reason"]))
    text = f"{row['action'].removesuffix('_schedule')} by {row['actor']}"
    return Event(
        row["happened_at"],
        "decision",
        f"{text}: {', '.join(changed)}" if changed else text,
        {key: row[key] for key in ("actor", "action", "subject", "detail")},
    )


def run_file(row: Row) -> Event:
    """A settlement file that a run took."""
    return Event(
        row["received_at"],
        "file",
        f"{row['name']}: {counted(row['row_count'], 'row')}, "
        f"{row['quarantined_count']} quarantined",
        {key: row[key] for key in ("name", "sha256", "row_count", "quarantined_count")},
    )


def quarantined(row: Row) -> Event:
    """A row that could not be read; its value stays in quarantine."""
    column = f", column {row['column_name']}" if row["column_name"] else ""
    return Event(
        row["quarantined_at"],
        "quarantined",
        f"{row['file_name']} line {row['line_no']}{column}: {row['reason']}, "
        f"expected {row['expected']}",
        {key: row[key] for key in ("file_name", "line_no", "column_name", "reason", "expected")},
    )
