"""The asset that wakes `due_sweep`: written by a reconciliation, watched by a trigger.

It carries no state. A wake that is lost or doubled costs latency, nothing else: the sweep runs
every minute all the same, and what it does is decided by the rows that are due.
"""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher

from duebook.airflow.triggers import DueTrigger

DUE = Asset(
    name="duebook_due",
    uri="duebook://due",
    watchers=[AssetWatcher(name="duebook_due_row", trigger=DueTrigger())],
)
