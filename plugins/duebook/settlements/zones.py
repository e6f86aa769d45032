"""Time zone abbreviations as providers' files write them.

An abbreviation stands for the zone of its region, since files write "PST" in July; its offset from
UTC only tells the two readings of a repeated autumn hour apart. Abbreviations that several regions
share mean the region whose providers write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

_BY_ZONE: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        "UTC": {"UTC": 0, "Z": 0},
        "Europe/London": {"GMT": 0, "BST": 1},
        "Europe/Lisbon": {"WET": 0, "WEST": 1},
        "Europe/Amsterdam": {"CET": 1, "CEST": 2, "MET": 1, "MEST": 2},
        "Europe/Helsinki": {"EET": 2, "EEST": 3},
        "Europe/Moscow": {"MSK": 3},
        "America/New_York": {"EST": -5, "EDT": -4},
        "America/Chicago": {"CST": -6, "CDT": -5},
        "America/Denver": {"MST": -7, "MDT": -6},
        "America/Los_Angeles": {"PST": -8, "PDT": -7},
        "America/Anchorage": {"AKST": -9, "AKDT": -8},
        "Pacific/Honolulu": {"HST": -10},
        "America/Sao_Paulo": {"BRT": -3},
        "Asia/Kolkata": {"IST": 5.5},
        "Asia/Singapore": {"SGT": 8},
        "Asia/Hong_Kong": {"HKT": 8},
        "Asia/Tokyo": {"JST": 9},
        "Asia/Seoul": {"KST": 9},
        "Australia/Sydney": {"AEST": 10, "AEDT": 11},
        "Australia/Adelaide": {"ACST": 9.5, "ACDT": 10.5},
        "Australia/Perth": {"AWST": 8},
        "Pacific/Auckland": {"NZST": 12, "NZDT": 13},
    }
)

ABBREVIATIONS: Final[Mapping[str, tuple[str, timedelta]]] = MappingProxyType(
    {
        abbreviation: (zone, timedelta(hours=hours))
        for zone, offsets in _BY_ZONE.items()
        for abbreviation, hours in offsets.items()
    }
)
"""Abbreviation to its region's IANA zone and its own offset from UTC."""
