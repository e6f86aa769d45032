"""The transaction between two windows of sends: results in, mark moved, the gate's facts out.

It checks the batch's token first and names the flush that it follows, so it may be repeated after a
lost acknowledgement. Results and outcomes go in by COPY; when a key or an attempt has ended
otherwise, the same transaction is repeated by INSERT past the conflicts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

import psycopg
from psycopg import errors
from psycopg.rows import class_row, dict_row

from duebook.db.sql import query
from duebook.domain.catch_up import CatchUpPolicy
from duebook.errors import RefusedError

Place = Literal["due", "in_doubt", "held", "proposed"]

ENDINGS = frozenset({"sent", "done", "expired"})
_SLOW_REPEATS = 10
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_SPECIAL = re.compile(r"[\\\t\n\r]")


class Claimed(NamedTuple):
    """One intent of a window with the gate's facts, as read_window_facts gives them.

    The last four come later. Of missed intents, see services/catch_up.py: newer ones that are due,
    the policy where it is not the kind's, and the slot that catching up gave it. Of those that no
    contact cap has room for, see services/manners.py: from when on there is.
    """

    position: int
    account_id: str
    intent_id: int
    attempt_no: int
    operation_key: str | None
    kind: str
    payment_id: str | None
    ownership: str
    intended_local: datetime | None
    zone: str | None
    give_up_at: datetime
    due_at: datetime
    tries: int
    safe_retry_until: datetime | None
    address: str | None
    recipient_zone: str | None
    region: str | None
    has_outcome: bool
    suppression_reason: str | None
    requests: list[str] | None
    is_consent_refused: bool
    is_settled_meanwhile: bool
    is_claimed_elsewhere: bool
    sent_attempt_no: int | None
    is_catching_up: bool
    newer_due: int = 0
    policy: CatchUpPolicy | None = None
    slot_at: datetime | None = None
    contact_free_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """Where an intent goes that has not ended. `due_at` None keeps its due time.

    `is_repeat`: it may have been accepted and is due only where its channel recognises a repeat.
    """

    place: Place
    reason: str
    due_at: datetime | None = None
    detail: str | None = None
    burns: bool = False
    look_up_from: datetime | None = None
    retest_at: datetime | None = None
    is_repeat: bool = False


class Ending(NamedTuple):
    """How one attempt went. `adopts` is an earlier attempt of the key that is known to be sent."""

    row: Claimed
    result: str
    reason: str | None
    finished_at: datetime
    provider_code: str | None = None
    provider_message_id: str | None = None
    move: Move | None = None
    adopts: int | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What the gate needs once a window."""

    environment_refusal: str | None
    sweep_paused_by: str | None
    is_channel_enabled: bool
    paused_until: datetime | None
    is_probe: bool
    has_tokens: bool
    consecutive_pauses: int
    quiet_hours: list[list[str | None]] | None
    pauses: list[list[str]] | None
    has_account_pauses: bool
    has_contact_caps: bool
    kinds: dict[str, list[Any]] | None
    paused_accounts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """An opened window. `now` is the database's clock; what is left counts from it.

    `slot_in_s`: when the batch's first message may start, counted from `now`, and the others each
    `slot_spacing_s` later; None where they need not be spaced. `cut_at`: the position from which on
    its rows are left to the next window. `digest_keys` names the message of those that share one.
    """

    now: datetime
    lease_left: timedelta
    age_left: timedelta
    rules: Rules
    rows: list[Claimed]
    slot_in_s: float | None = None
    slot_spacing_s: float | None = None
    cut_at: int | None = None
    digest_keys: Mapping[tuple[str, int], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pause:
    """The whole channel rests."""

    wait: timedelta
    reason: str


@dataclass(frozen=True, slots=True)
class Flush:
    """One flush. Opens the window [start, mark), or keeps the mark, or closes the batch.

    `release_from`: on closing, the first position that was never tried. `unsent`: messages whose
    tokens go back to the budget. `disable_after` of a channel that gives up addresses at which
    every send has failed for so long. `complete` adds to the facts of a window, in the transaction
    that opens it. `opted_out` are accounts that told the provider to stop.
    """

    batch_id: int
    token: UUID
    follows: int
    channel: str
    environment: str
    lease: timedelta
    endings: Sequence[Ending]
    action: Literal["open", "keep", "close"]
    start: int = 0
    mark: int = 0
    renews: bool = False
    release_from: int | None = None
    unsent: int = 0
    returns_tokens: bool = False
    pause: Pause | None = None
    resets_pauses: bool = False
    is_probe: bool = False
    suppressed: Sequence[tuple[str, str]] = ()
    disable_after: timedelta | None = None
    opted_out: Sequence[str] = ()
    has_contact_caps: bool = False
    complete: Callable[[psycopg.Connection[Any], Window], Window] | None = None


@dataclass(slots=True)
class Flushed:
    """What a flush did. `is_gone`: the batch is not this sender's any more."""

    is_gone: bool = False
    late: int = 0
    not_counted: int = 0
    released: int = 0
    window: Window | None = field(default=None)


def apply_flush(conn: psycopg.Connection[Any], flush: Flush) -> Flushed:
    """Apply `flush` in one transaction, past conflicts if there are any. Safe to repeat.

    Raises psycopg.Error; nothing was applied then, or (a lost connection) it is not known.
    """
    try:
        with conn.transaction():
            return _apply(conn, flush, is_slow=False)
    except errors.UniqueViolation:
        pass
    for _ in range(_SLOW_REPEATS):
        try:
            with conn.transaction():
                return _apply(conn, flush, is_slow=True)
        except errors.SerializationFailure:
            continue
    with conn.transaction():
        return _apply(conn, flush, is_slow=True)


def _apply(conn: psycopg.Connection[Any], flush: Flush, *, is_slow: bool) -> Flushed:
    keys = {"batch_id": flush.batch_id, "token": flush.token}
    locked = conn.execute(query("lock_batch"), keys, prepare=True).fetchone()
    done = Flushed()
    if locked is None:
        return _after_the_end(conn, flush, keys)
    if locked[0] == flush.follows:
        _write_endings(conn, flush, done, is_slow)
        _write_channel_state(conn, flush)
        if flush.action == "close":
            _close(conn, flush, done)
            return done
        position = _advance(conn, flush, locked[1])
    elif locked[0] == flush.follows + 1:
        # Applied already; only its acknowledgement was lost.
        position = conn.execute(query("read_batch"), keys).fetchone()
    else:
        # Flushes that this sender saw applied are not there.
        raise RefusedError(
            f"batch {flush.batch_id} is at flush {locked[0]}, its sender at {flush.follows}: was "
            "the database restored? Look with `duebook restore accept --dry-run`"
        )
    if flush.action == "open":
        done.window = _read_window(conn, flush, position)
    return done


def _after_the_end(conn: psycopg.Connection[Any], flush: Flush, keys: dict[str, Any]) -> Flushed:
    ended = conn.execute(query("find_batch_end"), keys).fetchone()
    if ended is not None and ended[1] > flush.follows:
        return Flushed(is_gone=True)
    kept = conn.execute(
        query("record_late_results"),
        {
            "batch_id": flush.batch_id,
            "flush_no": flush.follows + 1,
            "results": _results_json(flush.endings),
        },
    ).fetchone()
    _suppress(conn, flush)
    return Flushed(is_gone=True, late=kept[0] if kept else 0)


def _write_endings(
    conn: psycopg.Connection[Any], flush: Flush, done: Flushed, is_slow: bool
) -> None:
    endings = flush.endings
    if not endings:
        return
    if is_slow:
        counted = {
            (account_id, intent_id, attempt_no)
            for account_id, intent_id, attempt_no, counts in conn.execute(
                query("append_results"),
                {
                    "batch_id": flush.batch_id,
                    "flush_no": flush.follows + 1,
                    "results": _results_json(endings),
                },
            )
            if counts
        }
        endings = [each for each in endings if _key(each) in counted]
        done.not_counted = len(flush.endings) - len(endings)
    else:
        _copy_endings(conn, flush)
    _move(conn, flush.batch_id, endings)
    _adopt(conn, endings)
    _suppress(conn, flush)
    _fail_over(conn, endings)
    _give_contact_slots_back(conn, flush, endings)
    if flush.disable_after is not None:
        _note_deliveries(conn, flush.channel, endings, flush.disable_after)


def _copy_endings(conn: psycopg.Connection[Any], flush: Flush) -> None:
    # Formatted by hand: this is the hot path, and psycopg's row writer takes thrice as long.
    text = _escaped if _needs_escapes(flush.endings) else _plain
    batch = f"\t{flush.batch_id}\t{flush.follows + 1}\t"
    results: list[str] = []
    outcomes: list[str] = []
    last, at = None, ""
    for row, result, reason, finished_at, code, message_id, _, _ in flush.endings:
        if finished_at is not last:
            last, at = finished_at, finished_at.isoformat()
        account_id = text(row.account_id)
        why, sent_id = text(reason), text(message_id)
        results.append(
            f"{account_id}\t{row.intent_id}\t{row.attempt_no}{batch}{result}\t{why}\t{text(code)}"
            f"\t{sent_id}\t{at}\n"
        )
        if result in ENDINGS:
            local = r"\N" if row.intended_local is None else row.intended_local.isoformat()
            outcomes.append(
                f"{account_id}\t{text(row.operation_key)}\t{row.intent_id}\t{row.kind}\t"
                f"{text(row.payment_id)}\t{result}\t{why}\t{local}\t{text(row.zone)}\t"
                f"{row.due_at.isoformat()}\t{at}\t{row.attempt_no}\t{sent_id}\n"
            )
    with conn.cursor() as cursor:
        with cursor.copy(query("copy_attempt_results")) as copy:
            copy.write("".join(results))
        if outcomes:
            with cursor.copy(query("copy_outcomes")) as copy:
                copy.write("".join(outcomes))


def _needs_escapes(endings: Sequence[Ending]) -> bool:
    # Texts that repeat are looked at once; what is left are two keys a row.
    texts = {ending.provider_message_id for ending in endings}
    texts.update([ending.provider_code for ending in endings])
    texts.update([ending.reason for ending in endings])
    texts.update([ending.row.zone for ending in endings])
    texts.update([ending.row.account_id for ending in endings])
    keys = "".join([f"{each.row.operation_key}{each.row.payment_id}" for each in endings])
    return _SPECIAL.search(keys + "".join([text for text in texts if text])) is not None


def _plain(value: str | None) -> str:
    return r"\N" if value is None else value


def _escaped(value: str | None) -> str:
    return r"\N" if value is None else value.translate(_ESCAPES)


def _key(ending: Ending) -> tuple[str, int, int]:
    return ending.row.account_id, ending.row.intent_id, ending.row.attempt_no


def _move(conn: psycopg.Connection[Any], batch_id: int, endings: Sequence[Ending]) -> None:
    moves = [
        {
            "account_id": each.row.account_id,
            "intent_id": each.row.intent_id,
            "attempt_no": each.row.attempt_no,
            "place": each.move.place,
            "due_at": _iso(each.move.due_at),
            "reason": each.move.reason,
            "detail": each.move.detail,
            "burns": each.move.burns,
            "look_up_from": _iso(each.move.look_up_from),
            "retest_at": _iso(each.move.retest_at),
            "is_repeat": each.move.is_repeat,
        }
        for each in endings
        if each.move is not None
    ]
    if moves:
        conn.execute(query("move_attempted"), {"batch_id": batch_id, "moves": json.dumps(moves)})


def _adopt(conn: psycopg.Connection[Any], endings: Sequence[Ending]) -> None:
    adopted = [each for each in endings if each.adopts is not None]
    if adopted:
        conn.execute(
            query("adopt_late_results"),
            {
                "account_ids": [each.row.account_id for each in adopted],
                "intent_ids": [each.row.intent_id for each in adopted],
                "attempt_nos": [each.adopts for each in adopted],
            },
        )


def _suppress(conn: psycopg.Connection[Any], flush: Flush) -> None:
    if flush.suppressed:
        conn.execute(
            query("suppress_refused"),
            {
                "channel": flush.channel,
                "account_ids": [account_id for account_id, _ in flush.suppressed],
                "reasons": [reason for _, reason in flush.suppressed],
            },
        )
    if flush.opted_out:
        conn.execute(
            query("refuse_consent"),
            {"channel": flush.channel, "account_ids": sorted(set(flush.opted_out))},
        )


def _fail_over(conn: psycopg.Connection[Any], endings: Sequence[Ending]) -> None:
    refused = [
        each.row
        for each in endings
        if each.result == "expired" and each.reason in ("refused", "suppressed")
    ]
    if refused:
        conn.execute(
            query("fail_over_refused"),
            {
                "account_ids": [row.account_id for row in refused],
                "intent_ids": [row.intent_id for row in refused],
            },
        )


def _give_contact_slots_back(
    conn: psycopg.Connection[Any], flush: Flush, endings: Sequence[Ending]
) -> None:
    unsent = [each.row for each in endings if each.result not in ("sent", "unknown")]
    if flush.has_contact_caps and unsent:
        conn.execute(
            query("give_contact_slots_back"),
            {
                "account_ids": [row.account_id for row in unsent],
                "intent_ids": [row.intent_id for row in unsent],
            },
        )


def _note_deliveries(
    conn: psycopg.Connection[Any], channel: str, endings: Sequence[Ending], give_up_after: timedelta
) -> None:
    reached = {each.row.account_id for each in endings if each.result == "sent"}
    failed = {each.row.account_id for each in endings if each.result in ("failed", "unknown")}
    failed |= {each.row.account_id for each in endings if each.reason == "exhausted"}
    if reached or failed:
        values = {"failed": sorted(failed), "reached": sorted(reached)}
        conn.execute(
            query("note_deliveries"),
            {"channel": channel, "give_up_after": give_up_after, **values},
            prepare=True,
        )


def _results_json(endings: Sequence[Ending]) -> str:
    return json.dumps(
        [
            {
                "account_id": each.row.account_id,
                "intent_id": each.row.intent_id,
                "attempt_no": each.row.attempt_no,
                "result": each.result,
                "reason": each.reason,
                "provider_code": each.provider_code,
                "provider_message_id": each.provider_message_id,
                "finished_at": each.finished_at.isoformat(),
            }
            for each in endings
        ]
    )


def _iso(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()


def _write_channel_state(conn: psycopg.Connection[Any], flush: Flush) -> None:
    if flush.pause is not None:
        conn.execute(
            query("pause_budget"),
            {
                "channel": flush.channel,
                "batch_id": flush.batch_id,
                "pause": flush.pause.wait,
                "reason": flush.pause.reason,
            },
        )
    elif flush.resets_pauses:
        conn.execute(query("reset_pauses"), {"channel": flush.channel, "batch_id": flush.batch_id})


def _close(conn: psycopg.Connection[Any], flush: Flush, done: Flushed) -> None:
    if flush.release_from is not None:
        released = conn.execute(
            query("release_batch_from"),
            {"batch_id": flush.batch_id, "from_position": flush.release_from},
        ).fetchone()
        done.released = released[0] if released else 0
    conn.execute(query("close_batch"), {"batch_id": flush.batch_id}, prepare=True)
    if flush.is_probe:
        conn.execute(
            query("give_probe_back"), {"channel": flush.channel, "batch_id": flush.batch_id}
        )
    unsent = flush.unsent + done.released
    if unsent and flush.returns_tokens:
        conn.execute(query("return_tokens"), {"channel": flush.channel, "tokens": unsent})


def _advance(conn: psycopg.Connection[Any], flush: Flush, mark: int) -> Any:
    is_open = flush.action == "open"
    return conn.execute(
        query("advance_batch"),
        {
            "batch_id": flush.batch_id,
            "window_start": flush.start if is_open else mark,
            "mark": flush.mark if is_open else mark,
            "renew": flush.renews,
            "lease": flush.lease,
        },
        prepare=True,
    ).fetchone()


def _read_window(conn: psycopg.Connection[Any], flush: Flush, position: Any) -> Window:
    with conn.cursor(row_factory=class_row(Rules)) as cursor:
        rules = cursor.execute(
            query("read_gate_rules"),
            {
                "environment": flush.environment,
                "channel": flush.channel,
                "batch_id": flush.batch_id,
            },
            prepare=True,
        ).fetchone()
    assert rules is not None
    rows = conn.execute(
        query("read_window_facts"),
        {"batch_id": flush.batch_id, "window_start": flush.start, "mark": flush.mark},
        prepare=True,
        binary=True,
    )
    window = Window(
        now=position[0],
        lease_left=timedelta(seconds=position[1]),
        age_left=timedelta(seconds=position[2]),
        rules=rules,
        rows=[Claimed(*row) for row in rows],
        slot_in_s=position[3],
        slot_spacing_s=position[4],
    )
    if rules.has_account_pauses:
        window = replace(window, rules=_with_account_pauses(conn, rules, window.rows))
    return window if flush.complete is None else flush.complete(conn, window)


def _with_account_pauses(
    conn: psycopg.Connection[Any], rules: Rules, rows: Sequence[Claimed]
) -> Rules:
    accounts = sorted({row.account_id for row in rows})
    paused = conn.execute(query("read_account_pauses"), {"account_ids": accounts}).fetchall()
    return replace(rules, paused_accounts=dict(paused))


def read_message_facts(
    conn: psycopg.Connection[Any], rows: Sequence[Claimed]
) -> dict[tuple[str, int], dict[str, Any]]:
    """What the notices of `rows` say, by (account, intent)."""
    reminders = [row for row in rows if row.intended_local is not None]
    if not reminders:
        return _facts_of(conn, "read_message_facts", rows)
    others = [row for row in rows if row.intended_local is None]
    found = _facts_of(conn, "read_message_facts", others) if others else {}
    return {**found, **_facts_of(conn, "read_reminder_facts", reminders)}


def _facts_of(
    conn: psycopg.Connection[Any], name: str, rows: Sequence[Claimed]
) -> dict[tuple[str, int], dict[str, Any]]:
    with conn.cursor(row_factory=dict_row) as cursor:
        cursor.execute(
            query(name),
            {
                "account_ids": [row.account_id for row in rows],
                "intent_ids": [row.intent_id for row in rows],
            },
        )
        return {(facts["account_id"], facts["intent_id"]): facts for facts in cursor}
