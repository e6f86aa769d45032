"""The assets that wake `due_sweep` and `provider_events`, each watched by a trigger.

They carry no state. A wake that is lost or doubled costs latency, nothing else: both DAGs run every
minute all the same, and what they do is decided by the rows that are due.
"""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher

from duebook.airflow.triggers import DueTrigger, EventTrigger

DUE = Asset(
    name="duebook_due",
    uri="duebook://due",
    watchers=[AssetWatcher(name="duebook_due_row", trigger=DueTrigger())],
)

RECEIVED = Asset(
    name="duebook_received",
    uri="duebook://received",
    watchers=[AssetWatcher(name="duebook_received_event", trigger=EventTrigger())],
)
