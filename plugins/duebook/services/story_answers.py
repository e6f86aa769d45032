"""Why something was or was not sent: one sentence for every place an intent can stand in, and for
every way in which a payment can have no intent at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from duebook.services.internal import INTERNAL
from duebook.services.story import Answer, Money, counted, deciding, minute, span
from duebook.services.story_catch_up import pause_text, pauses_of, target, why_late
from duebook.services.story_doubts import doubt_text, ended_doubt_text, repeat_text

Row = Mapping[str, Any]

EXPIRED: Final = {
    "too_late": "it could not be sent before it was too late",
    "superseded": "newer evidence took its place",
    "opted_out": "the recipient does not want it",
    "suppressed": "the channel must not reach this account any more (bounce, complaint, refusal)",
    "channel_disabled": "its channel was switched off",
    "settled_meanwhile": "what it says was no longer so when it was due",
    "cancelled": "somebody cancelled it",
    "exhausted": "every try failed",
    "refused": "the provider refused it for good",
    "dropped": "it was paused with mode drop",
    "skipped": "it was missed and its policy is skip",
}
HELD: Final = {
    "no_contact": "the account has no address for this channel: import its contact",
    "template": "its message could not be written: repair the template",
    "zone_unknown": "the zone of its contact or schedule is unknown: `duebook doctor` names it",
    "rule_edited": "the rule of its schedule was edited: the next sweep computes it again",
    "paused": "it is paused with mode hold: resume it",
    "poison": "it was claimed repeatedly without any result: look at the log of the sender",
    "attempt_conflict": "its attempt number was taken already: run duebook check",
    "environment": "this database may not send: run duebook restore accept NAME if it should",
    "no_consent": "the recipient has not agreed yet",
    "kind_unknown": "its kind has no policy any more: put it back into duebook.toml and apply",
    "gate_failed": "the gate could not judge it: look at the log of the sender",
    "rescue_failed": "its batch could not be rescued: run duebook check",
}
KINDS_OF_CHANGE: Final = {"missing": "payment_missing", "cleared": "payment_cleared"}


@dataclass(frozen=True, slots=True)
class Context:
    """What every answer depends on; `now` is the database's clock."""

    now: datetime
    environment_refusal: str | None
    last_claim_at: datetime | None
    kinds: Mapping[str, Row]
    money: Money
    pauses: Sequence[Row] = ()
    sweep_paused_by: str | None = None


@dataclass(frozen=True, slots=True)
class PaymentFacts:
    """All rows about one payment; `reassigned` holds the (entry, run) of each re-assignment."""

    payment: Row
    entries: Sequence[Row]
    suspense: Sequence[Row]
    changes: Sequence[Row]
    intents: Sequence[Row]
    discrepancies: Sequence[Row]
    reassigned: Set[tuple[str, int]]
    reassignments: Sequence[Row]


def payment_answers(facts: PaymentFacts, context: Context) -> tuple[Answer, ...]:
    """At least one answer for one payment, in the order in which things happened."""
    told = {row["change_id"] for row in facts.intents if row["change_id"] is not None}
    answers = [
        silent_change(row, context, facts.reassigned)
        for row in facts.changes
        if row["change_id"] not in told
    ]
    answers += [intent_answer(row, context) for row in facts.intents]
    if not answers:
        answers.append(no_change(facts, context))
    elif facts.suspense:
        answers.append(in_suspense(facts.suspense[-1], facts.payment))
    return tuple(answers)


def intent_answer(row: Row, context: Context) -> Answer:
    """Where one intent stands, and what it waits for."""
    code, text = _place(row, context)
    return Answer(
        code,
        f"{row['kind']}: {text}{repeat_text(row['operation_key'])}",
        was_sent=row["state"] in ("sent", "done"),
        payment_id=row["payment_id"],
        operation_key=row["operation_key"],
    )


def _why_proposed(row: Row) -> str:
    told = ""
    if row["told_by"] is not None:
        told = f"; {row['told_by']} sent it {minute(row['told_at'])}"
    return (
        f"not sent: {deciding(row)} was in mode {row['ownership']} when the change committed, so "
        f"it stays a proposal, also after going live{told}"
    )


def _place(row: Row, context: Context) -> tuple[str, str]:
    match row["state"]:
        case "sent":
            text = f"sent {minute(row['ended_at'])} by {row['channel']}{why_late(row)}"
            return "sent", ended_doubt_text(row) or text
        case "done":
            return "done", f"done {minute(row['ended_at'])}"
        case "expired":
            why = EXPIRED.get(row["reason"], str(row["reason"]))
            text = f"not sent: {why} ({minute(row['ended_at'])})"
            return row["reason"], text + why_late(row)
        case "proposed":
            return "proposed", _why_proposed(row)
        case "held":
            why = _why_held(row, context)
            detail = f" ({row['detail']})" if row["detail"] else ""
            return f"held_{row['reason']}", f"held: {why}{detail}; too late {_limit(row)}"
        case "unknown":
            return "in_doubt", doubt_text(row)
        case "enqueued":
            return "enqueued", f"with {row['sender']} until {minute(row['lease_until'])}"
        case "scheduled":
            return _scheduled(row, context)
        case _:
            return "lost", "it stands nowhere: run duebook check"


def _why_held(row: Row, context: Context) -> str:
    if row["reason"] == "paused":
        found = pauses_of(row, context.pauses)
        if not found:
            return "it was paused with mode hold; the next sweep puts it back"
        return f"{pause_text(found[0])}; `duebook resume {target(found[0])}` ends that"
    if row["reason"] == "zone_unknown" and row["detail"] is not None:
        return "the zone of its schedule is in no time zone data here: install a newer tzdata"
    return HELD.get(row["reason"], str(row["reason"]))


def _limit(row: Row) -> str:
    return f"from {minute(row['give_up_at'])}"


def _scheduled(row: Row, context: Context) -> tuple[str, str]:
    if context.environment_refusal:
        return "environment", f"waits: {context.environment_refusal}"
    if row["due_at"] > context.now:
        rule = f", {span(row['notify_after'])} after the change" if row["notify_after"] else ""
        if row["due_at"] != row["notify_at"]:
            rule = f", put off from {minute(row['notify_at'])}"
        text = (
            f"waits until {minute(row['due_at'])}{rule}; {span(row['due_at'] - context.now)} left"
        )
        return "not_due_yet", text + _then(row, context)
    late = f"due for {span(context.now - row['due_at'])}"
    if context.sweep_paused_by:
        return "incident", (
            f"{late}, but incident {context.sweep_paused_by} pauses the sweeps until "
            "`duebook incident resume`"
        )
    if row["paused_until"] is not None and row["paused_until"] > context.now:
        code = f" after {row['pause_reason']}" if row["pause_reason"] else ""
        return "budget_paused", (
            f"{late}, but {row['channel']} is paused until {minute(row['paused_until'])}{code}"
        )
    last = (
        f"a sender last claimed {span(context.now - context.last_claim_at)} ago"
        if context.last_claim_at
        else "no sender has claimed anything yet"
    )
    return "due", f"{late}, waits for the next sweep ({last}){_then(row, context)}"


def _then(row: Row, context: Context) -> str:
    """What will stop it when its time comes, as things stand now; nothing stops a hold's end."""
    if row["channel"] == INTERNAL:
        return ""
    for pause in pauses_of(row, context.pauses):
        ending = "not be sent" if pause["mode"] == "drop" else "be held"
        return f"; will {ending}: {pause_text(pause)}"
    if row["is_suppressed"]:
        return "; will not be sent: the account is suppressed"
    if not row["has_contact"]:
        return f"; will be held: no address for {row['channel']} yet"
    if not row["is_channel_enabled"]:
        return f"; will not be sent: {row['channel']} is switched off"
    return ""


def kinds_of(change: Row) -> tuple[str, ...]:
    """The kinds that tell a ledger change."""
    if change["change_kind"] != "balance":
        return (KINDS_OF_CHANGE[change["change_kind"]],)
    told = (
        ("is_capture", "payment_settled"),
        ("is_refund", "payment_refunded"),
        ("is_dispute", "payment_disputed"),
    )
    return tuple(kind for name, kind in told if change[name])


def change_text(row: Row) -> str:
    """`expected → settled`, or the transition by its name."""
    if row["change_kind"] != "balance":
        return str(row["change_kind"])
    return f"{row['before_status']} → {row['after_status']}"


def silent_change(row: Row, context: Context, reassigned: Set[tuple[str, int]]) -> Answer:
    """Why a ledger change promised nothing."""
    what = f"{change_text(row)} in run {row['run_id']}"
    if (row["entry_id"], row["run_id"]) in reassigned:
        why = "its entry came from or went to another payment; a re-assignment is not told twice"
        return Answer("reassigned", f"{what}: {why}", payment_id=row["payment_id"])
    code, why = silence(
        kinds_of(row),
        row["notify_from"],
        row["evidence_at"],
        context.kinds,
        row["provider_account"],
    )
    return Answer(code, f"{what}: {why}", payment_id=row["payment_id"])


def silence(
    kinds: Iterable[str],
    notify_from: datetime | None,
    evidence_at: datetime,
    configured: Mapping[str, Row],
    provider_account: str,
) -> tuple[str, str]:
    """Code and reason, judged by the rules as they stand now."""
    if notify_from is not None and evidence_at < notify_from:
        return "baseline", (
            f"its evidence of {minute(evidence_at)} is older than notify_from "
            f"{minute(notify_from)} of {provider_account}: baseline tells nobody"
        )
    kinds = list(kinds)
    if not kinds:
        return "no_kind", "no amount changed, and no kind tells that"
    disabled = [k for k in kinds if k not in configured or not configured[k]["is_enabled"]]
    if disabled:
        return "kind_disabled", f"the kind {', '.join(disabled)} is not enabled"
    return "not_told", (
        f"no intent was made, though {', '.join(kinds)} is enabled now: the rules were others "
        "when the run committed, or this evidence had been told before"
    )


def no_change(facts: PaymentFacts, context: Context) -> Answer:
    """Why a payment has neither a ledger change nor an intent."""
    payment = facts.payment
    code, text = _unchanged(facts, context)
    return Answer(code, text, payment_id=payment["payment_id"])


def _unchanged(facts: PaymentFacts, context: Context) -> tuple[str, str]:
    payment = facts.payment
    if payment["is_cancelled"]:
        status = "void" if payment["is_void"] else payment["booked_status"]
        return "void", f"the books cancelled it ({status}), so nothing is expected or told"
    if payment["same_reference"] and not facts.entries:
        return "duplicate_reference", (
            f"the reference {payment['reference']} is booked for "
            f"{counted(payment['same_reference'], 'other payment')} too, so no entry can be given "
            "to one of them: correct the books"
        )
    if facts.suspense:
        answer = in_suspense(facts.suspense[-1], payment)
        return answer.code, answer.text
    if facts.entries:
        if all(row["entry_status"] == "pending" for row in facts.entries if row["is_current"]):
            return "announced", (
                "the provider announced it and has not settled it yet"
                + _available(facts.entries[-1])
            )
        return "nothing_changed", "its evidence changed neither balance nor status"
    if payment["provider_account"] is None:
        return "unrouted", (
            "the books name no provider account for it and no route does, so nobody waits for it: "
            "name one in the ledger or in [routing] of duebook.toml"
        )
    return _awaited(payment, context)


def _available(row: Row) -> str:
    return f" (available {minute(row['available_at'])})" if row["available_at"] else ""


def _awaited(payment: Row, context: Context) -> tuple[str, str]:
    account, limit = payment["provider_account"], payment["missing_from"]
    if limit is None:
        return "unknown_account", f"its provider account {account} was never applied"
    if limit > context.now:
        return "pending", (
            f"no settlement yet, and {account} has until {minute(limit)} "
            f"({span(limit - context.now)} left)"
        )
    judged = payment["last_full_as_of"]
    if judged is None or judged < limit:
        last = f"the last was as of {minute(judged)}" if judged else "there was none yet"
        return "not_judged", (
            f"no settlement, overdue since {minute(limit)}; no full run of {account} has judged "
            f"it since ({last})"
        )
    return "missing", f"no settlement; {account} had until {minute(limit)}: missing at the provider"


def in_suspense(entry: Row, payment: Row | None = None) -> Answer:
    """Why an entry that stands in suspense tells nobody."""
    subject = f"entry {entry['entry_id']} of {entry['provider_account']} stands in suspense"
    reference, claimants = entry["payment_ref"], entry["claimants"]
    payment_id = payment["payment_id"] if payment else None
    if reference is None:
        return Answer("suspense", f"{subject}: it carries no reference of a payment")
    if not claimants:
        text = f"{subject}: no booked payment has its reference {reference}"
        return Answer("suspense", f"{text}; it is told when one claims it")
    if claimants > 1:
        text = f"{subject}: {counted(claimants, 'booked payment')} have its reference {reference}"
        return Answer("duplicate_reference", f"{text}: correct the books", payment_id=payment_id)
    text = f"{subject}; a booked payment has its reference {reference} by now"
    claim = f"the next run of {entry['provider_account']} gives it to that payment"
    return Answer("suspense", f"{text}, and {claim}", payment_id=payment_id)


def account_answers(account: Row, payments: int) -> Iterator[Answer]:
    """What holds for every notice of an account."""
    for refusal in account["refusals"]:
        yield Answer("opted_out", f"the recipient does not want {refusal}")
    for suppression in account["suppressions"]:
        yield Answer("suppressed", f"suppressed on {suppression}")
    if not account["channels"]:
        yield Answer("no_contact", "no address is known for any channel: import its contact")
    if not payments:
        yield Answer("no_payment", "no payment of this account is booked")
