"""duebook.toml: what is refused, and in which words."""

from __future__ import annotations

import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duebook.config import Config, load_config, parse_config, parse_duration, shipped_path
from duebook.errors import ConfigurationError


def shipped() -> dict[str, Any]:
    return tomllib.loads(shipped_path().read_text(encoding="utf-8"))


def changed(key: str, value: Any) -> dict[str, Any]:
    """The shipped document with one key set; None takes it away."""
    document = shipped()
    *path, last = key.split(".")
    place = document
    for part in path:
        place = place.setdefault(part, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return document


def test_the_shipped_file_has_what_every_command_needs() -> None:
    config = load_config()
    assert {"stripe", "adyen", "paypal"} <= set(config.provider_accounts)
    assert all(account.mode == "dry_run" for account in config.provider_accounts.values())
    assert set(config.kinds) == {
        "payment_settled",
        "payment_refunded",
        "payment_disputed",
        "payment_missing",
        "payment_cleared",
        "hold_refund",
        "reminder",
    }


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "provider_accounts.adyen.settle_within",
            "3 days",
            "provider_accounts.adyen.settle_within = '3 days': expected an ISO 8601 duration such"
            " as P3D or PT10M",
        ),
        (
            "provider_accounts.adyen.mode",
            "on",
            "provider_accounts.adyen.mode = 'on': expected 'dry_run', 'shadow' or 'live'",
        ),
        (
            "provider_accounts.adyen.zone",
            "CEST",
            "provider_accounts.adyen.zone = 'CEST': expected an IANA time zone such as"
            " Europe/Amsterdam",
        ),
        ("provider_accounts.adyen.zone", None, "provider_accounts.adyen.zone is missing"),
        (
            "provider_accounts.adyen.zome",
            "UTC",
            "provider_accounts.adyen.zome is not a key that is known here",
        ),
        (
            "provider_accounts.adyen.notify_from",
            "2026-01-01T00:00:00",
            "provider_accounts.adyen.notify_from = '2026-01-01T00:00:00': expected an instant with"
            " its offset such as 2026-11-30T02:00:00Z",
        ),
        (
            "provider_accounts.adyen.provider",
            "csv",
            "provider_accounts.adyen.columns is missing, which a csv provider needs",
        ),
        (
            "kinds.payment_missing.catch_up_window",
            "PT1M",
            "kinds.payment_missing.catch_up_window: expected at least two sweeps (PT2M)",
        ),
        ("kinds.payment_missing.catch_up", None, "kinds.payment_missing.catch_up is missing"),
        (
            "kinds.payment_missing.channel",
            "pigeon",
            "kinds.payment_missing.channel = 'pigeon': expected one of [channels]",
        ),
        (
            "routing.default",
            "adyne",
            "routing: provider account 'adyne' is not in [provider_accounts]",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_file_key_and_what_was_expected(
    key: str, value: Any, said: str
) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        parse_config(changed(key, value), "duebook.toml")
    assert str(refusal.value) == f"duebook.toml: {said}"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "quiet_hours",
            "at night",
            """quiet_hours = 'at night': expected "none", or tables [[quiet_hours]]""",
        ),
        (
            "quiet_hours",
            [{"from": "21:00+01:00", "until": "08:00"}],
            "quiet_hours.0.from = '21:00+01:00': expected a local time such as \"21:00\"",
        ),
        ("quiet_hours", [{"from": "21:00"}], "quiet_hours.0.until is missing"),
        (
            "quiet_hours",
            [{"from": "21:00", "until": "21:00"}],
            "quiet_hours.0.until: expected another time than from",
        ),
        (
            "quiet_hours",
            [{"from": "21:00", "until": "08:00", "kind": "payment_gone"}],
            "quiet_hours.0.kind = 'payment_gone': expected one of [kinds]",
        ),
        (
            "quiet_hours",
            [{"from": "21:00", "until": "08:00", "channel": "pigeon"}],
            "quiet_hours.0.channel = 'pigeon': expected one of [channels]",
        ),
    ],
)
def test_wrong_quiet_hours_are_one_line(key: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        parse_config(changed(key, value), "duebook.toml")
    assert str(refusal.value) == f"duebook.toml: {said}"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "webhooks.stripe.provider_account",
            "strype",
            "webhooks.stripe.provider_account = 'strype': expected one of [provider_accounts]",
        ),
        (
            "webhooks.stripe.scheme",
            "gitlab",
            "webhooks.stripe.scheme = 'gitlab': expected 'stripe', 'standard', 'adyen', "
            "'adyen_platform', 'paypal', 'square', 'github' or 'twilio'",
        ),
        (
            "webhooks.stripe.max_per_second",
            0,
            "webhooks.stripe.max_per_second = 0: input should be greater than or equal to 0.01",
        ),
        ("webhooks.stripe.connection", None, "webhooks.stripe.connection is missing"),
        (
            "webhooks.stripe.secret",
            "whsec_x",
            "webhooks.stripe.secret is not a key that is known here",
        ),
        (
            "provider_events.max_tries",
            0,
            "provider_events.max_tries = 0: input should be greater than 0",
        ),
    ],
)
def test_wrong_webhooks_are_one_line(key: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        parse_config(changed(key, value), "duebook.toml")
    assert str(refusal.value) == f"duebook.toml: {said}"


def test_a_file_that_is_no_toml_or_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        load_config(tmp_path / "none.toml")
    path = tmp_path / "broken.toml"
    path.write_text("[kinds\n")
    with pytest.raises(ConfigurationError, match=r"broken\.toml: .*line 1"):
        load_config(path)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("P3D", timedelta(days=3)),
        ("PT10M", timedelta(minutes=10)),
        ("P1W", timedelta(weeks=1)),
        ("P1DT2H3M4S", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("PT0S", timedelta(0)),
    ],
)
def test_durations_are_iso_8601(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["P", "PT", "3D", "P1Y", "P1M", "P1DT", "-P1D", "", 3, None])
def test_other_durations_are_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["P36526D", "P9999999D", "P9999999999D", "P99999999999999999W"])
def test_a_duration_that_leads_out_of_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="longer than 100 years"):
        parse_duration(text)


def test_stored_settings_make_the_same_account_again() -> None:
    config: Config = load_config()
    for account in config.provider_accounts.values():
        again = type(account).model_validate(
            {
                "provider": account.provider,
                "mode": account.mode,
                "settle_within": account.settle_within,
                "zone": account.zone,
                "look_back": account.look_back,
                **account.stored_settings(),
            }
        )
        assert again == account


@pytest.mark.parametrize("horizon", ["PT1H", "P400D"])
def test_a_horizon_is_a_day_to_a_year(horizon: str) -> None:
    document = tomllib.loads(shipped_path().read_text())
    document["sweep"]["horizon"] = horizon
    with pytest.raises(ConfigurationError, match=r"sweep\.horizon = .*a day to a year"):
        parse_config(document, "duebook.toml")
