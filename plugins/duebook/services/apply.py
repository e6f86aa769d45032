"""Writes duebook.toml to the database: idempotent, and every change an audit event.

Nothing is removed: an account or kind that is no longer in the file keeps its row, since facts
name it. Switch a kind off with `enabled = false`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from duebook.config import (
    ChannelConfig,
    CohortConfig,
    Config,
    ContactCapConfig,
    KindConfig,
    OldSenderConfig,
    ProviderAccountConfig,
    QuietHoursConfig,
    SeverityConfig,
)
from duebook.db.connect import Connect
from duebook.db.sql import query
from duebook.errors import ConfigurationError, RefusedError


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """What an apply changed, as `<what> <name>`."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, list[str]]:
        """The document of `duebook apply --json`."""
        return {"added": self.added, "changed": self.changed, "unchanged": self.unchanged}

    def note(self, name: str, change: str | None) -> None:
        """Enter one object under what became of it."""
        groups = {"added": self.added, "changed": self.changed, None: self.unchanged}
        groups[change].append(name)


def apply_config(connect: Connect, config: Config, *, by: str) -> ApplyReport:
    """Write the whole file in one transaction; `by` is who is kept as the actor.

    Raises RefusedError when an account is to be live and the file states no quiet hours.
    """
    with connect() as connection, connection.transaction():
        return write_config(connection, config, by=by)


def write_config(
    connection: psycopg.Connection[Any],
    config: Config,
    *,
    by: str,
    only_account: str | None = None,
    only_missing_kinds: bool = False,
) -> ApplyReport:
    """The same on a connection, inside the caller's transaction.

    `only_account` leaves the other provider accounts alone; `only_missing_kinds` leaves the kinds
    and quiet hours alone that the database has already.
    """
    report = ApplyReport()
    accounts = {
        name: account
        for name, account in sorted(config.provider_accounts.items())
        if only_account in (None, name)
    }
    _require_quiet_hours(config, accounts)
    for name, account in accounts.items():
        report.note(f"provider account {name}", _put_account(connection, name, account, by))
    if config.quiet_hours is not None and not (only_missing_kinds and _is_stated(connection)):
        report.note("quiet hours", _put_quiet_hours(connection, config.quiet_hours, by))
    for name, channel in sorted(config.channels.items()):
        _put_budget(connection, name, channel, report, by)
    if only_account is None:
        change = _put_contact_caps(connection, config.contact_caps, by)
        if change is not None or config.contact_caps:
            report.note("contact caps", change)
        report.note("severity", _put_severity(connection, config.severity, by))
        _put_rollout(connection, config, report, by)
    known = {row[0] for row in connection.execute(query("list_applied_kinds"))}
    for kind, policy in sorted(config.kinds.items()):
        if not (only_missing_kinds and kind in known):
            report.note(f"kind {kind}", _put_kind(connection, kind, policy, by))
    return report


def _put_budget(
    connection: psycopg.Connection[Any],
    name: str,
    channel: ChannelConfig,
    report: ApplyReport,
    by: str,
) -> None:
    none = {"capacity": None, "refill_per_minute": None, "slot_spacing": None}
    stored = none if channel.budget is None else channel.budget.stored()
    row = connection.execute(
        query("put_budget"), {"actor": by, "channel": name, **stored}
    ).fetchone()
    if row is not None or channel.budget is not None:
        report.note(f"budget {name}", None if row is None else str(row[0]))


def _put_contact_caps(
    connection: psycopg.Connection[Any], caps: Sequence[ContactCapConfig], by: str
) -> str | None:
    row = connection.execute(
        query("put_contact_caps"),
        {
            "actor": by,
            "channels": [cap.channel or "*" for cap in caps],
            "most": [cap.most for cap in caps],
            "per": [cap.per for cap in caps],
        },
    ).fetchone()
    return None if row is None else str(row[0])


def _put_rollout(
    connection: psycopg.Connection[Any], config: Config, report: ApplyReport, by: str
) -> None:
    """Cohorts and old senders. A cohort that is no longer in the file ends with a version of it."""
    known = {row[0] for row in connection.execute(query("list_old_senders"))}
    if {name for name, each in config.old_senders.items() if each.asks} - known:
        # A run that began before it could tell whose its keys are is waited for.
        connection.execute(query("lock_provider_accounts"))
    for name, sender in sorted(config.old_senders.items()):
        report.note(f"old sender {name}", _put_old_sender(connection, name, sender, by))
    for place, (name, cohort) in enumerate(config.cohorts.items(), start=1):
        report.note(f"cohort {name}", _put_cohort(connection, place, name, cohort, by))
    stated = {"actor": by, "cohorts": list(config.cohorts)}
    for (name,) in connection.execute(query("end_cohorts"), stated).fetchall():
        report.note(f"cohort {name}", "changed")
    for row in connection.execute(query("find_live_cohorts_without_start")):
        raise RefusedError(
            f"cohort {row[0]} is to be live for provider account {row[1]}, which has no "
            "notify_from: state from when on its changes are told"
        )


def _put_old_sender(
    connection: psycopg.Connection[Any], name: str, sender: OldSenderConfig, by: str
) -> str | None:
    values = {
        "actor": by,
        "sender": name,
        "asks": sender.asks,
        "same_within": sender.same_within,
        "endpoint": sender.webhook,
    }
    row = connection.execute(query("put_old_sender"), values).fetchone()
    return None if row is None else str(row[0])


def _put_cohort(
    connection: psycopg.Connection[Any], place: int, name: str, cohort: CohortConfig, by: str
) -> str | None:
    attribute = cohort.attribute
    members = cohort.accounts
    if cohort.accounts_file is not None:
        members = _listed_accounts(name, cohort.accounts_file)
    row = connection.execute(
        query("put_cohort"),
        {
            "actor": by,
            "cohort": name,
            "place": place,
            "mode": cohort.mode,
            "provider_accounts": cohort.provider_accounts and list(cohort.provider_accounts),
            "is_list": members is not None,
            "account_ids": sorted(set(members or ())),
            "percent": cohort.percent,
            "attribute": attribute and attribute[0],
            "attribute_values": attribute and list(attribute[1]),
        },
    ).fetchone()
    return None if row is None else str(row[0])


def _listed_accounts(name: str, path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise ConfigurationError(
            f"cohorts.{name}.accounts_file: {path}: {error.strerror}"
        ) from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"cohorts.{name}.accounts_file: {path}: not UTF-8") from None
    return tuple(line.strip() for line in lines if line.strip())


def put_missing_kind(
    connection: psycopg.Connection[Any], config: Config, kind: str, *, by: str
) -> None:
    """Put one kind of the file in, unless the database has it or the file does not state it."""
    known = {row[0] for row in connection.execute(query("list_applied_kinds"))}
    if kind in config.kinds and kind not in known:
        _put_kind(connection, kind, config.kinds[kind], by)


def _require_quiet_hours(config: Config, accounts: Mapping[str, ProviderAccountConfig]) -> None:
    """Nothing goes live before it was stated at which times nobody is told."""
    live = [name for name, account in accounts.items() if account.mode == "live"]
    if live and config.quiet_hours is None:
        raise RefusedError(
            f'provider_accounts.{live[0]}.mode = "live" needs quiet hours: state them as '
            '[[quiet_hours]] tables, or quiet_hours = "none" at the top of the file'
        )


def _is_stated(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute(query("read_quiet_hours_statement")).fetchone()
    return row is not None and bool(row[0])


def _put_quiet_hours(
    connection: psycopg.Connection[Any], windows: Sequence[QuietHoursConfig], by: str
) -> str | None:
    row = connection.execute(
        query("put_quiet_hours"),
        {
            "actor": by,
            "regions": [window.region for window in windows],
            "channels": [window.channel for window in windows],
            "kinds": [window.kind for window in windows],
            "starts": [window.from_local for window in windows],
            "ends": [window.until_local for window in windows],
        },
    ).fetchone()
    return None if row is None else str(row[0])


def _put_severity(
    connection: psycopg.Connection[Any], severity: SeverityConfig, by: str
) -> str | None:
    currencies = sorted({*severity.high, *severity.critical})
    row = connection.execute(
        query("put_severity_rules"),
        {
            "actor": by,
            "currencies": ["*", *currencies],
            "high": [None, *(severity.high.get(each) for each in currencies)],
            "critical": [None, *(severity.critical.get(each) for each in currencies)],
            "high_after": severity.high_after,
            "critical_after": severity.critical_after,
        },
    ).fetchone()
    return None if row is None else str(row[0])


def _put_account(
    connection: psycopg.Connection[Any], name: str, account: ProviderAccountConfig, by: str
) -> str | None:
    row = connection.execute(
        query("put_provider_account"),
        {
            "actor": by,
            "provider_account": name,
            "provider": account.provider,
            "mode": account.mode,
            "notify_from": account.notify_from,
            "settle_within": account.settle_within,
            "zone": account.zone,
            "look_back": account.look_back,
            "settings": Jsonb(account.stored_settings()),
        },
    ).fetchone()
    return None if row is None else str(row[0])


def _put_kind(
    connection: psycopg.Connection[Any], kind: str, policy: KindConfig, by: str
) -> str | None:
    row = connection.execute(
        query("put_intent_kind"),
        {
            "actor": by,
            "kind": kind,
            "enabled": policy.enabled,
            "channel": policy.channel,
            "notify_after": policy.notify_after,
            "give_up_after": policy.give_up_after,
            "is_superseded": policy.supersedes,
            "catch_up": policy.catch_up,
            "catch_up_window": policy.catch_up_window,
            "max_occurrences": policy.max_occurrences,
            "spread_per_minute": policy.spread_per_minute,
            "max_tries": policy.max_tries,
            "max_claims": policy.max_claims,
            "may_unsubscribe": policy.may_unsubscribe,
            "is_critical": policy.critical,
            "digest_within": policy.digest and policy.digest.within,
            "digest_most": policy.digest and policy.digest.most,
            "fail_over": list(policy.fail_over),
        },
    ).fetchone()
    return None if row is None else str(row[0])
