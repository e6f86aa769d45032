"""One reconciliation run: lay down what a provider settled, compare in SQL, apply only differences.

Staging happens outside any transaction and touches no table of ours. Then one transaction (READ
COMMITTED) holds the provider account's row and writes evidence, settled side, ledger changes,
discrepancies, cursor and intents: all of it or nothing. Every step is one set-based statement in
sql/queries/reconcile; this module is their order and what they count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

import psycopg
import psycopg.errors
import psycopg.rows
import structlog
from psycopg.types.json import Jsonb

from duebook.config import Config, ProviderAccountConfig
from duebook.db.connect import Connect, is_away, unavailable
from duebook.db.sql import query
from duebook.domain.money import exponent, to_minor
from duebook.errors import InputError, RefusedError, UnavailableError
from duebook.services.apply import put_missing_kind, write_config
from duebook.services.staging import (
    API_SOURCE_NO,
    Progress,
    Staged,
    prepare,
    stage_api,
    stage_files,
    stage_subjects,
)
from duebook.settlements.base import ApiSource
from duebook.settlements.stores import StoreFactory, files_of

log = structlog.get_logger(__name__)

SourceFactory = Callable[[str, ProviderAccountConfig], ApiSource]
"""Makes the API source of a provider account, from its name and configuration."""

Scope = Literal["full", "payments"]

_API_PROVIDERS: Final = ("stripe",)
_MANY_ROWS: Final = 20_000
# Later runs are never judged as of an earlier instant, so a mistyped year would last for ever.
_FURTHEST_AS_OF: Final = timedelta(days=366)
_RUN_TABLES: Final = (
    "create_staged_duplicate",
    "create_superseded_entry",
    "create_applied_entry",
    "create_claim",
    "create_affected_payment",
    "create_position_before",
    "create_position_after",
    "create_position_new",
    "create_gained_evidence",
    "create_allocation_new",
    "create_moved_entry",
    "create_change_draft",
    "create_finding",
    "create_gone_discrepancy",
    "create_affected_batch",
    "create_transition",
    "create_older_intent",
)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A settlement file that is to count no more, who says so, and why."""

    file_id: int
    name: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReconcileRequest:
    """What to compare. `files` empty: the account's folder, or its API.

    `as_of` None is the database's clock once the account is held. Scope `payments` judges only what
    the source told, and neither moves the order of full runs nor is refused by it. `subjects` are
    the provider's ids that such a run asks about, `events` the received events that it answers:
    their effect is part of its transaction. `withdrawal`: a run that takes a file back.
    """

    account: str
    files: tuple[Path, ...] = ()
    as_of: datetime | None = None
    dry_run: bool = False
    scope: Scope = "full"
    triggered_by: str = "operator"
    subjects: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    withdrawal: Withdrawal | None = None


@dataclass(frozen=True, slots=True)
class BatchLine:
    """One settlement batch in one net currency, minor units; the sum is without the payout."""

    batch_ref: str
    currency: str
    sum_minor: int
    payout_minor: int
    difference_minor: int
    status: str


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """What a run did; `run_id` is None for a dry run, which wrote nothing."""

    account: str
    run_id: int | None
    mode: str
    as_of: datetime
    dry_run: bool
    entries_new: int
    entries_changed: int
    entries_unchanged: int
    entries_stale: int
    quarantined: int
    matched: int
    pending: int
    discrepancies: Mapping[str, int]
    ledger_changes: int
    intents: int
    batches: Sequence[BatchLine]
    unknown_types: Mapping[str, int] = field(default_factory=dict)
    file_checks: Sequence[Mapping[str, Any]] = ()
    withdrawn: Mapping[str, Any] | None = None

    @property
    def exit_code(self) -> int:
        """1 with discrepancies, quarantined rows, a batch that does not close or a file whose own
        totals differ from its rows, else 0.
        """
        is_unclosed = any(batch.status == "not_closed" for batch in self.batches)
        is_odd = is_unclosed or bool(self.file_checks)
        return int(bool(self.discrepancies) or self.quarantined > 0 or is_odd)

    def to_json(self) -> dict[str, Any]:
        """The document of `duebook reconcile --json`."""
        return {
            "account": self.account,
            "run_id": self.run_id,
            "mode": self.mode,
            "as_of": self.as_of.isoformat(),
            "dry_run": self.dry_run,
            "entries_new": self.entries_new,
            "entries_changed": self.entries_changed,
            "entries_unchanged": self.entries_unchanged,
            "entries_stale": self.entries_stale,
            "quarantined": self.quarantined,
            "matched": self.matched,
            "pending": self.pending,
            "discrepancies": dict(self.discrepancies),
            "ledger_changes": self.ledger_changes,
            "intents": self.intents,
            "batches": [
                {
                    "batch_ref": batch.batch_ref,
                    "currency": batch.currency,
                    "sum_minor": batch.sum_minor,
                    "payout_minor": batch.payout_minor,
                    "difference_minor": batch.difference_minor,
                    "status": batch.status,
                }
                for batch in self.batches
            ],
            "unknown_types": dict(self.unknown_types),
            "file_checks": [dict(each) for each in self.file_checks],
        }


def reconcile(
    connect: Connect,
    request: ReconcileRequest,
    config: Config,
    source_factory: SourceFactory,
    progress: Progress | None = None,
    stores: StoreFactory | None = None,
) -> ReconcileReport:
    """Compare one provider account with the ledger, as of one instant.

    `stores` makes the store of a folder that is a URL.

    Raises InputError (a file that can't be read as a whole, an unknown account), RefusedError (an
    as-of older than the last full run's), UnavailableError (provider or database away); nothing
    was applied then.
    """
    try:
        with connect() as connection:
            run = _Run(connection, request, config, source_factory, progress or _silent, stores)
            return run.execute()
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
        raise UnavailableError(
            f"another run or import holds what a run of {request.account} needs; nothing was "
            "applied, try again"
        ) from None
    except psycopg.Error as error:
        if is_away(error):
            raise unavailable(error) from error
        raise


def _silent(stage: str, done: int, total: int | None) -> None:
    del stage, done, total


@dataclass(slots=True)
class _Counts:
    told: int = 0
    new: int = 0
    changed: int = 0
    stale: int = 0
    known: int = 0
    quarantined: int = 0
    matched: int = 0
    pending: int = 0
    changes: int = 0
    intents: int = 0

    @property
    def unchanged(self) -> int:
        return self.told - self.new - self.changed - self.stale + self.known


class _Run:
    """One run on one connection; `values` are the parameters that its statements share."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        request: ReconcileRequest,
        config: Config,
        source_factory: SourceFactory,
        progress: Progress,
        stores: StoreFactory | None,
    ) -> None:
        self._connection = connection
        self._stores = stores
        self._request = request
        self._config = config
        self._source_factory = source_factory
        self._progress = progress
        self._counts = _Counts()
        self._staged = Staged()
        self._withdrawn: Mapping[str, Any] | None = None
        self._has_allocations = False
        self._values: dict[str, Any] = {
            "provider_account": request.account,
            "is_full": request.scope == "full",
            "scope": request.scope,
            "triggered_by": request.triggered_by,
            "is_withdrawal": request.withdrawal is not None,
        }
        self._account: ProviderAccountConfig | None = None

    def execute(self) -> ReconcileReport:
        """Stage, then compare and apply in one transaction; a dry run takes it all back."""
        account = self._set_up()
        prepare(self._connection)
        self._values["started_at"] = self._one("read_clock")["now"]
        self._staged = self._stage(account)
        self._progress("compare", 0, None)
        report: ReconcileReport | None = None
        with self._connection.transaction():
            report = self._apply()
            if self._request.dry_run:
                raise psycopg.Rollback
        assert report is not None, "the transaction ended without an error"
        log.info(
            "reconciled",
            account=report.account,
            run_id=report.run_id,
            new=report.entries_new,
            changed=report.entries_changed,
            quarantined=report.quarantined,
            ledger_changes=report.ledger_changes,
            intents=report.intents,
        )
        return report

    def _set_up(self) -> ProviderAccountConfig:
        """The account as it is applied; one that is only in duebook.toml is applied first."""
        stored = self._read("read_provider_account")
        if stored is not None:
            return _stored_account(stored)
        name = self._request.account
        if name not in self._config.provider_accounts:
            known = ", ".join(self._config.provider_accounts) or "none"
            raise InputError(f"unknown provider account {name}; duebook.toml has {known}")
        if not self._request.dry_run:
            with self._connection.transaction():
                self._apply_configuration()
        return self._config.provider_accounts[name]

    def _apply_configuration(self) -> None:
        write_config(
            self._connection,
            self._config,
            by="reconcile",
            only_account=self._request.account,
            only_missing_kinds=True,
        )

    def _stage(self, account: ProviderAccountConfig) -> Staged:
        name, now = self._request.account, self._values["started_at"]
        if self._request.withdrawal is not None:
            return Staged()
        if self._request.subjects:
            source = self._source_factory(name, account)
            asked = self._request.subjects
            return stage_subjects(self._connection, name, source, asked, now, self._progress)
        if account.provider in _API_PROVIDERS and not self._request.files:
            source = self._source_factory(name, account)
            return stage_api(self._connection, name, account, source, now, self._progress)
        with self._files(name, account) as paths:
            if not paths:
                return Staged()
            return stage_files(self._connection, name, account, paths, self._progress)

    @contextmanager
    def _files(self, name: str, account: ProviderAccountConfig) -> Iterator[Sequence[Path]]:
        """The files that were asked for, else those of the account's folder, while it lasts."""
        if self._request.files:
            yield self._request.files
            return
        with ExitStack() as stack:
            try:
                lent = files_of(account.folder, account.pattern, self._stores)
                paths = stack.enter_context(lent)
            except UnavailableError as error:
                raise UnavailableError(f"provider account {name}: {error}") from error
            yield paths

    def _apply(self) -> ReconcileReport:
        self._lock()
        for name in _RUN_TABLES:
            self._do(name)
        self._take_files()
        if self._request.withdrawal is not None:
            self._stage_withdrawal(self._request.withdrawal)
        self._compare()
        self._apply_entries()
        self._apply_positions()
        self._judge()
        self._sum_batches()
        self._write_discrepancies()
        if self._request.withdrawal is not None:
            self._withdrawn = self._one("end_withdrawn_intents")
            self._do("mark_file_withdrawn")
        self._promise()
        return self._finish()

    def _stage_withdrawal(self, withdrawal: Withdrawal) -> None:
        """What counts without the file, as rows that are told in this run."""
        self._values |= {
            "file_id": withdrawal.file_id,
            "by": withdrawal.by,
            "reason": withdrawal.reason,
            "source_name": f"withdrawal of {withdrawal.name}",
            "source_no": API_SOURCE_NO,
            "name": f"withdrawal of {withdrawal.name}",
            "sha256": None,
            "size_bytes": 0,
        }
        self._do("put_staged_source")
        self._do("stage_withdrawal")
        self._analyze("staged_entry")

    def _lock(self) -> None:
        stored = self._read("lock_provider_account")
        if stored is None:
            # A dry run of an account that was never applied: what it writes is taken back.
            self._apply_configuration()
            stored = self._one("lock_provider_account")
        account = _stored_account(stored)
        self._account = account
        started = self._one("start_run")
        last = stored["last_full_as_of"]
        as_of = self._request.as_of or max(filter(None, (started["as_of"], last)))
        is_order_kept = self._request.scope == "full" and not self._request.dry_run
        if is_order_kept and last is not None and as_of < last:
            raise RefusedError(
                f"--as-of {as_of.isoformat()} is older than the last full run of "
                f"{self._request.account} ({last.isoformat()}); look at it with --dry-run"
            )
        is_stated = is_order_kept and self._request.as_of is not None
        if is_stated and as_of > started["as_of"] + _FURTHEST_AS_OF:
            raise RefusedError(
                f"--as-of {as_of.isoformat()} is over a year ahead, and every later run of "
                f"{self._request.account} would be judged by it; look at it with --dry-run"
            )
        self._values |= {
            "run_id": started["run_id"],
            "new_seen_xid": started["seen_xid"],
            "seen_xid": self._one("read_seen_horizon")["seen_xid"],
            "as_of": as_of,
            "last_full_as_of": last,
            "books_until": stored["books_until"],
            "judged_books_until": stored["judged_books_until"],
            "mode": account.mode,
            "notify_from": account.notify_from,
            "settle_within": account.settle_within,
            "tolerance": Jsonb(_tolerance(account)),
            "match_on": list(account.match_on),
            "match_window": account.match_window,
            "completeness": _completeness(account),
            "cursor_position": self._staged.cursor and self._staged.cursor.position,
        }

    def _take_files(self) -> None:
        self._do("register_files")
        self._keep_file_checks()
        lost = [row["sha256"] for row in self._rows("list_lost_checksums")]
        if lost:
            self._do("drop_known_entries")
        known = [*self._staged.known, *self._staged.repeated, *lost]
        self._values["checksums"] = known
        self._counts.known = self._one("count_known_rows")["entries"] if known else 0
        self._catch_up_with_others()
        self._do("quarantine_rows")
        self._counts.quarantined = self._one("count_rejects")["quarantined"]
        self._analyze("staged_entry", "staged_source")

    def _keep_file_checks(self) -> None:
        if not self._staged.checks:
            return
        numbers, checks = zip(*self._staged.checks, strict=True)
        self._values |= {
            "source_nos": list(numbers),
            "sections": [each.section for each in checks],
            "check_currencies": [each.currency for each in checks],
            "check_names": [each.check for each in checks],
            "stated": [each.stated for each in checks],
            "computed": [each.computed for each in checks],
        }
        self._do("write_file_checks")

    def _catch_up_with_others(self) -> None:
        """What was left out as unchanged was so before another run: then all rows are needed."""
        staged = self._staged
        self._values["is_filtered"] = staged.is_filtered
        if not staged.is_filtered or self._one("read_last_run")["run_id"] == staged.last_run_id:
            return
        assert staged.lay_down_all is not None, "rows that were left out can be laid down"
        staged.lay_down_all()
        self._do("drop_known_entries")
        self._values["is_filtered"] = False

    def _compare(self) -> None:
        counts = self._counts
        if self._do("find_duplicates"):
            self._do("drop_duplicates")
        self._do("compare_entries")
        told = self._one("count_entries")
        counts.told, counts.new = told["told"], told["entries_new"]
        counts.changed, counts.stale = told["entries_changed"], told["entries_stale"]
        if counts.changed or counts.stale:
            self._do("number_versions")
        if counts.stale:
            self._do("drop_known_stale")
        self._analyze("applied_entry")

    def _apply_entries(self) -> None:
        """Versions, whose payment each entry is, and the current versions."""
        self._do(self._staged.body)
        self._do("store_superseded")
        self._do("store_versions")
        self._do("claim_applied_entries")
        self._do("claim_rebooked_entries")
        self._do("claim_forced_entries")
        self._analyze("claim")
        self._do("resolve_claims")
        self._do("force_claims")
        self._do("mark_forced_matches")
        self._do("insert_entries")
        if self._counts.changed:
            self._do("update_entries")
        self._do("update_claims")
        self._share_entries()
        if self._staged.is_api:
            self._do("refresh_source_order")
        if self._counts.new > _MANY_ROWS:
            self._analyze("duebook.settlement_entry")

    def _share_entries(self) -> None:
        """Entries that pay a group of booked payments at once."""
        shared = self._do("share_group_entries")
        has_before = self._one("has_allocations")["has_allocations"]
        if has_before:
            shared += self._do("find_gone_allocations")
            self._do("delete_allocations")
        if shared:
            self._do("write_allocations")
            self._analyze("allocation_new")
        self._has_allocations = bool(shared or has_before)

    def _apply_positions(self) -> None:
        affected = self._do("find_affected_payments")
        if self._has_allocations:
            affected += self._do("find_allocated_payments")
        self._analyze("affected_payment")
        self._do("lock_payments")
        self._do("read_positions_before")
        self._do("sum_positions")
        if self._has_allocations:
            self._do("add_allocated_positions")
        self._analyze("position_new", "position_before")
        self._do("delete_positions")
        self._do("write_positions")
        if affected > _MANY_ROWS:
            self._analyze("duebook.settled_position")
        self._do("read_positions_after")
        self._do("find_gained_evidence")
        if self._has_allocations:
            self._do("gain_allocated_evidence")
        self._do("find_moved_entries")
        self._analyze("position_after", "gained_evidence", "moved_entry")
        self._do("audit_reassignments")
        self._do("draft_balance_changes")

    def _judge(self) -> None:
        self._progress("judge", 0, None)
        judged = self._one("judge_payments")
        self._counts.matched, self._counts.pending = judged["matched"], judged["pending"]
        self._do("find_entry_differences")
        self._analyze("finding")
        if self._do("find_transitions"):
            self._do("lock_transitions")
            self._do("drop_overtaken_transitions")
            self._do("draft_transitions")

    def _sum_batches(self) -> None:
        if self._do("find_affected_batches"):
            self._analyze("affected_batch")
            self._do("delete_batches")
            self._do("write_batches")
            self._do("find_batch_differences")

    def _write_discrepancies(self) -> None:
        self._do("find_gone_discrepancies")
        self._do("note_discrepancies")
        self._do("open_discrepancies")
        self._do("close_discrepancies")

    def _promise(self) -> None:
        self._analyze("change_draft")
        self._counts.changes = self._do("write_ledger_changes")
        if not self._counts.changes:
            return
        if self._do("find_older_intents"):
            self._analyze("older_intent")
            self._do("supersede_intents")
        self._counts.intents = self._one("write_intents")["intents"] + self._settle_holds()
        if self._counts.intents:
            self._one("doubt_lost_intents")

    def _settle_holds(self) -> int:
        """Confirm, re-hold or refund what waits for the payments settled here; the refunds told."""
        if not self._rows("list_run_holds"):
            return 0
        put_missing_kind(self._connection, self._config, "hold_refund", by="reconcile")
        settled = self._one("settle_run_holds")
        log.info("holds_settled", run_id=self._values["run_id"], **settled)
        return int(settled["refunds"])

    def _finish(self) -> ReconcileReport:
        counts, values = self._counts, self._values
        found = {row["kind"]: row["open_count"] for row in self._rows("count_discrepancies")}
        values |= {
            "entries_new": counts.new,
            "entries_changed": counts.changed,
            "entries_unchanged": counts.unchanged,
            "entries_stale": counts.stale,
            "quarantined": counts.quarantined,
            "matched": counts.matched,
            "pending": counts.pending,
            "discrepancies": Jsonb(found),
            "ledger_changes": counts.changes,
            "intents": counts.intents,
        }
        self._do("write_run")
        if self._request.events:
            values |= {
                "event_ids": list(self._request.events),
                "reasons": [None] * len(self._request.events),
                "effect": "read",
            }
            self._do("write_event_effects")
        if self._request.scope == "full":
            values["seen_xid"] = values["new_seen_xid"]
            self._do("advance_account")
        return ReconcileReport(
            account=self._request.account,
            run_id=None if self._request.dry_run else values["run_id"],
            mode=values["mode"],
            as_of=values["as_of"],
            dry_run=self._request.dry_run,
            entries_new=counts.new,
            entries_changed=counts.changed,
            entries_unchanged=counts.unchanged,
            entries_stale=counts.stale,
            quarantined=counts.quarantined,
            matched=counts.matched,
            pending=counts.pending,
            discrepancies=found,
            ledger_changes=counts.changes,
            intents=counts.intents,
            batches=[BatchLine(**row) for row in self._rows("list_run_batches")],
            unknown_types=self._staged.unknown_types,
            file_checks=self._rows("list_failed_file_checks") if self._staged.checks else [],
            withdrawn=self._withdrawn,
        )

    def _do(self, name: str) -> int:
        """Run one statement; how many rows it concerned."""
        return self._execute(name).rowcount

    def _rows(self, name: str) -> list[dict[str, Any]]:
        return self._execute(name).fetchall()

    def _read(self, name: str) -> dict[str, Any] | None:
        return self._execute(name).fetchone()

    def _one(self, name: str) -> dict[str, Any]:
        row = self._read(name)
        assert row is not None, f"{name} returns one row"
        return row

    def _execute(self, name: str) -> psycopg.Cursor[dict[str, Any]]:
        statement = query(name)
        cursor = self._connection.cursor(row_factory=psycopg.rows.dict_row)
        # A statement without parameters keeps its percent signs single.
        return cursor.execute(statement, self._values if "%(" in statement else None)

    def _analyze(self, *tables: str) -> None:
        row = self._connection.execute(query("build_analyze"), {"tables": list(tables)}).fetchone()
        assert row is not None, "a builder returns one row"
        self._connection.execute(str(row[0]).encode())


def _stored_account(stored: Mapping[str, Any]) -> ProviderAccountConfig:
    return ProviderAccountConfig.model_validate(
        {
            "provider": stored["provider"],
            "mode": stored["mode"],
            "notify_from": stored["notify_from"],
            "settle_within": stored["settle_within"],
            "zone": stored["zone"],
            "look_back": stored["look_back"],
            **stored["settings"],
        }
    )


def _tolerance(account: ProviderAccountConfig) -> dict[str, int]:
    """In minor units, as the provider counts them."""
    return {
        currency: to_minor(amount, exponent(currency, account.provider))
        for currency, amount in account.tolerance.items()
    }


def _completeness(account: ProviderAccountConfig) -> str:
    """Whether a batch of this account is whole as told: see write_batches.sql."""
    if account.provider == "adyen":
        return "always"
    if account.provider == "paypal":
        # What stays with PayPal is carried on from day to day, so a day need not come to nothing.
        return "as_told"
    if account.provider == "csv":
        is_whole = account.columns is not None and account.columns.batches_are_complete
        return "always" if is_whole else "with_payout"
    if account.provider in ("gocardless", "square"):
        # Their answers name what a payout pays, and it closes its batch.
        return "with_payout"
    return "as_told"
