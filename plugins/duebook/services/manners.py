"""What a window owes its recipients: no more than their cap, and together what belongs together.

All of it is fixed in the transaction that opens the window, before any I/O: which notices go in
one message is a stored fact, and each message is entered under the contact caps. A digest that may
have been accepted is repeated only as it was; where that can't be, its members are in doubt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

import psycopg

from duebook.db.sql import query
from duebook.services.catch_up import complete_window
from duebook.services.flush import Claimed, Window
from duebook.services.judge import Policies, judge_rows

_Key = tuple[str, int]


class Parcel(NamedTuple):
    """What goes in one message: adjacent intents of one account. `digest_key` if several."""

    rows: tuple[Claimed, ...]
    digest_key: str | None


def completing(
    safety: timedelta, channel: str, *, is_last: bool
) -> Callable[[psycopg.Connection[Any], Window], Window]:
    """What completes a window of `channel` in the transaction that opens it.

    `safety`: how long after its opening its I/O may still end. `is_last`: nothing of the batch
    follows it.
    """

    def complete(conn: psycopg.Connection[Any], window: Window) -> Window:
        window = complete_window(conn, window, safety=safety)
        policies = Policies(window.rules)
        if not (window.rules.has_contact_caps or policies.has_digests):
            return window
        return _with_parcels(conn, window, policies, channel, safety, is_last)

    return complete


def parcels_of(rows: Sequence[Claimed], digest_keys: Mapping[_Key, str]) -> list[Parcel]:
    """The messages that `rows` make, in their order."""
    parcels: list[Parcel] = []
    for _, together in groupby(rows, lambda row: digest_keys.get(_key(row)) or _key(row)):
        members = tuple(together)
        parcels.append(Parcel(members, digest_keys.get(_key(members[0]))))
    return parcels


def digest_key_of(channel: str, rows: Sequence[Claimed]) -> str:
    """The key of a message that tells several notices: the same for the same members."""
    keys = "\n".join(sorted(row.operation_key or "" for row in rows))
    return f"digest:{channel}:{hashlib.sha256(keys.encode()).hexdigest()[:32]}"


def _with_parcels(
    conn: psycopg.Connection[Any],
    window: Window,
    policies: Policies,
    channel: str,
    safety: timedelta,
    is_last: bool,
) -> Window:
    rows = judge_rows(window.rows, policies, window.now, safety)[0]
    former = _former_digests(conn, rows)
    torn = _torn(rows, former)
    groups = _groups([row for row in rows if _key(row) not in torn], policies, former)
    cut_at = None
    if not is_last and len(groups) > 1 and len(groups[-1]) > 1:
        # The rest of the last one may stand in the next window: all of it goes there.
        cut_at = groups.pop()[0].position
    late: Mapping[_Key, datetime] = {}
    if window.rules.has_contact_caps:
        late = _without_room(conn, channel, groups, policies)
        groups = [group for group in groups if _key(group[0]) not in late]
    digests = [(digest_key_of(channel, group), group) for group in groups if len(group) > 1]
    _record(conn, channel, digests)
    return replace(
        window,
        # A repeat that is torn is past its limit already, as the gate sees it.
        rows=[
            row._replace(
                contact_free_at=late.get(_key(row)),
                safe_retry_until=window.now if _key(row) in torn else row.safe_retry_until,
            )
            for row in window.rows
        ],
        cut_at=cut_at,
        digest_keys={_key(row): digest_key for digest_key, group in digests for row in group},
    )


def _former_digests(
    conn: psycopg.Connection[Any], rows: Sequence[Claimed]
) -> dict[_Key, tuple[int, ...]]:
    """Of repeats, who was in the message that they went in last."""
    repeats = [row for row in rows if row.safe_retry_until is not None]
    if not repeats:
        return {}
    found = conn.execute(
        query("read_former_digests"),
        {
            "account_ids": [row.account_id for row in repeats],
            "intent_ids": [row.intent_id for row in repeats],
            "attempt_nos": [row.attempt_no for row in repeats],
        },
    )
    return {
        (account_id, intent_id): tuple(intent_ids) for account_id, intent_id, _, intent_ids in found
    }


def _torn(rows: Sequence[Claimed], former: Mapping[_Key, tuple[int, ...]]) -> set[_Key]:
    """Repeats whose message can't be sent again just as it was."""
    whole: set[_Key] = set()
    for number, row in enumerate(rows):
        members = former.get(_key(row), ())
        after = rows[number : number + len(members)]
        is_whole = tuple(each.intent_id for each in after) == members and all(
            each.account_id == row.account_id and former.get(_key(each)) == members
            for each in after
        )
        if members and is_whole:
            whole.update(_key(each) for each in after)
    return former.keys() - whole


def _groups(
    rows: Sequence[Claimed], policies: Policies, former: Mapping[_Key, tuple[int, ...]]
) -> list[list[Claimed]]:
    """Adjacent rows of one account and of kinds that are told together, each in its bounds."""
    groups: list[list[Claimed]] = []
    for row in rows:
        group = groups[-1] if groups else []
        if group and _fits(row, group, policies, former):
            group.append(row)
        else:
            groups.append([row])
    return groups


def _fits(
    row: Claimed,
    group: Sequence[Claimed],
    policies: Policies,
    former: Mapping[_Key, tuple[int, ...]],
) -> bool:
    first = group[0]
    if first.account_id != row.account_id:
        return False
    if first.safe_retry_until is not None or row.safe_retry_until is not None:
        # A repeat is told as it was before, and nothing else with it.
        members = former.get(_key(first))
        return members is not None and members == former.get(_key(row))
    most = policies.digest_most(first.kind)
    is_together = policies.digest_most(row.kind) is not None
    return is_together and most is not None and len(group) < most


def _without_room(
    conn: psycopg.Connection[Any],
    channel: str,
    groups: Sequence[Sequence[Claimed]],
    policies: Policies,
) -> dict[_Key, datetime]:
    """The intents that no contact cap has room for, each with the instant from which it has."""
    counted = [
        group for group in groups if not any(policies.is_critical(row.kind) for row in group)
    ]
    if not counted:
        return {}
    found = conn.execute(
        query("take_contact_slots"),
        {
            "channel": channel,
            "account_ids": [group[0].account_id for group in counted],
            "intent_ids": [group[0].intent_id for group in counted],
        },
    ).fetchall()
    free_at = {(account_id, intent_id): at for account_id, intent_id, at in found}
    return {
        _key(row): free_at[_key(group[0])]
        for group in counted
        if _key(group[0]) in free_at
        for row in group
    }


def _record(
    conn: psycopg.Connection[Any],
    channel: str,
    digests: Sequence[tuple[str, Sequence[Claimed]]],
) -> None:
    if not digests:
        return
    members = [(digest_key, row) for digest_key, group in digests for row in group]
    conn.execute(
        query("record_digests"),
        {
            "channel": channel,
            "account_ids": [row.account_id for _, row in members],
            "digest_keys": [digest_key for digest_key, _ in members],
            "intent_ids": [row.intent_id for _, row in members],
            "attempt_nos": [row.attempt_no for _, row in members],
        },
    )


def _key(row: Claimed) -> _Key:
    return row.account_id, row.intent_id
