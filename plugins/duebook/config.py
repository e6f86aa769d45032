"""duebook.toml: provider accounts, kinds, channels, the sweep and routing, validated once.

Durations are ISO 8601 ("P3D", "PT10M"). Nothing that decides whether or when somebody is told has
a default in code: the file states it. No secret stands in the file: a connection is named, and its
login comes from the environment or a secrets backend.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import datetime, time, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args
from zoneinfo import available_timezones

from pydantic import AfterValidator as After
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from duebook.errors import ConfigurationError

SHIPPED_NAME: Final = "duebook.toml"
_ACCOUNT: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"
_DURATION: Final = re.compile(
    r"P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)S)?)?"
)
_LONGEST: Final = timedelta(days=36525)
PACED_SHARE: Final = 0.8
"""Of a rate, what is used where messages are spaced: they arrive less evenly than they start."""
_CLAIMED_AHEAD_S: Final = 2


def parse_duration(text: Any) -> timedelta:
    """An ISO 8601 duration of whole weeks, days, hours, minutes and seconds.

    Years and months are refused: how long they are depends on when they start. So is what is longer
    than 100 years.
    """
    if isinstance(text, timedelta):
        return text
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None or not any(match.groups()) or str(text).endswith("T"):
        raise ValueError("expected an ISO 8601 duration such as P3D or PT10M")
    try:
        duration = timedelta(**{unit: int(value) for unit, value in match.groupdict("0").items()})
    except OverflowError:
        duration = timedelta.max
    # Added to an instant, a longer one would leave the years that Python can read.
    if duration > _LONGEST:
        raise ValueError("longer than 100 years (P36525D)")
    return duration


def _known_zone(name: str) -> str:
    if name not in zone_names():
        raise ValueError("expected an IANA time zone such as Europe/Amsterdam")
    return name


def _horizon(horizon: timedelta) -> timedelta:
    # A day outlasts what newer time zone data can move the next date by.
    if not timedelta(days=1) <= horizon <= timedelta(days=366):
        raise ValueError("expected a day to a year (P1D to P366D)")
    return horizon


def _cap_length(per: timedelta) -> timedelta:
    if not timedelta(minutes=1) <= per <= timedelta(days=366):
        raise ValueError("expected a minute to a year (PT1M to P366D)")
    return per


def _aware(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ValueError("expected an instant with its offset such as 2026-11-30T02:00:00Z")
    return instant


def _keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    if not keys or len(set(keys)) < len(keys):
        raise ValueError("expected one or more references, each once")
    return keys


@cache
def zone_names() -> frozenset[str]:
    """Every IANA zone of the pinned time zone data."""
    return frozenset(available_timezones())


def _folder(value: Any) -> Any:
    # As a path, the two slashes of a URL would become one.
    return Path(value) if isinstance(value, str) and "://" not in value else value


Folder = Annotated[Path | str, BeforeValidator(_folder)]
Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
Zone = Annotated[str, After(_known_zone)]
Instant = Annotated[datetime, After(_aware)]
Name = Annotated[str, Field(pattern=_ACCOUNT)]
CurrencyCode = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
Columns = str | tuple[str, ...]
EntryTypeName = Literal[
    "charge",
    "refund",
    "chargeback",
    "chargeback_reversal",
    "fee",
    "payout",
    "transfer",
    "reserve",
    "conversion",
    "adjustment",
    "other",
]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CsvColumns(_Model):
    """Which column of a provider's file is what, and how its numbers and dates are written.

    `entry_id` may name several columns; their values together are the identity. Amounts are signed
    major units in `gross` (also called `amount`), or stand in `debit` and `credit`, or have their
    sign in the column `direction`, where `debit_words` mark what goes out. What has no column: fee
    is gross less net or 0, net is gross less fee, net_currency is currency, status is settled, the
    source's order is arrival. Without a `header` columns are numbers from 1.
    """

    entry_id: Columns
    type: str | None = None
    gross: str | None = Field(
        default=None,
        validation_alias=AliasChoices("amount", "gross"),
        serialization_alias="amount",
    )
    debit: str | None = None
    credit: str | None = None
    direction: str | None = None
    fee: str | None = None
    net: str | None = None
    currency: str | None = None
    currency_code: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None = None
    net_currency: str | None = None
    payment_ref: str | None = None
    provider_payment_ref: str | None = None
    batch_ref: str | None = None
    occurred_at: str
    occurred_time: str | None = None
    occurred_zone: str | None = None
    updated_at: str | None = None
    status: str | None = None
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    decimal: Literal[".", ","] = "."
    thousands: Literal["", ",", ".", " ", "'"] = ""
    fee_sign: Literal["cost_is_positive", "cost_is_negative"] = "cost_is_positive"
    dates: Literal["iso", "day_first", "month_first"] = "iso"
    amount_sign: Literal["as_written", "inverted"] = "as_written"
    debit_words: tuple[str, ...] = ("D", "DR", "Debit")
    minor_units: bool = False
    header: bool = True
    batches_are_complete: bool = False

    def by_field(self) -> dict[str, str]:
        """Field to column, `entry_id` split into its parts."""
        parts = (self.entry_id,) if isinstance(self.entry_id, str) else self.entry_id
        fields = {f"entry_id_{number}": part for number, part in enumerate(parts, start=1)}
        for name in _CSV_FIELDS:
            column = getattr(self, name)
            if column is not None:
                fields[name] = column
        return fields


_CSV_FIELDS: Final = (
    "type",
    "gross",
    "debit",
    "credit",
    "direction",
    "fee",
    "net",
    "currency",
    "net_currency",
    "payment_ref",
    "provider_payment_ref",
    "batch_ref",
    "occurred_at",
    "occurred_time",
    "occurred_zone",
    "updated_at",
    "status",
)


def parse_wall_time(value: Any) -> time:
    """A local time of day, without a zone: "21:00", or TOML's own 21:00:00."""
    if isinstance(value, str):
        try:
            value = time.fromisoformat(value)
        except ValueError:
            value = None
    if not isinstance(value, time) or value.tzinfo is not None:
        raise ValueError('expected a local time such as "21:00"')
    return value


Weekday = Literal["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


class ExpectConfig(_Model):
    """When evidence is expected: by a local time of the account's zone, on these days."""

    by: Annotated[time, BeforeValidator(parse_wall_time)]
    days: Annotated[tuple[Weekday, ...], Field(min_length=1)] = get_args(Weekday)


class ProviderAccountConfig(_Model):
    """One account at one provider.

    `folder` is where its files arrive: a path, or the URL of an object store
    (`s3://connection@bucket/prefix`). `match_on` are the entry's references by which a payment is
    looked for, the first that finds one decides; `match_window`, how far what occurred may lie from
    when the payment was expected and still be it. `tolerance` is by how much, in major units by
    currency, what was captured may differ from what was expected and still match.
    """

    provider: Literal["stripe", "adyen", "paypal", "gocardless", "square", "braintree", "csv"]
    mode: Literal["dry_run", "shadow", "live"]
    notify_from: Instant | None = None
    settle_within: Duration
    zone: Zone
    look_back: Duration = timedelta(minutes=10)
    connection: str | None = None
    folder: Folder | None = None
    pattern: str = "*.csv"
    reference: Annotated[str, Field(pattern=r"^(charge|payment_intent|metadata\.[^.]{1,40})$")] = (
        "charge"
    )
    columns: CsvColumns | None = None
    types: Mapping[str, EntryTypeName] = Field(default_factory=dict)
    statuses: Mapping[str, Literal["pending", "settled", "ignored"]] = Field(default_factory=dict)
    match_on: Annotated[
        tuple[Literal["payment_ref", "provider_payment_ref"], ...], After(_keys)
    ] = ("payment_ref",)
    match_window: Duration | None = None
    tolerance: Mapping[CurrencyCode, Annotated[Decimal, Field(ge=0)]] = Field(default_factory=dict)
    expect: ExpectConfig | None = None

    def stored_settings(self) -> dict[str, Any]:
        """What `provider_account.settings` keeps: all that has no column of its own."""
        return self.model_dump(
            mode="json",
            by_alias=True,
            exclude_defaults=True,
            exclude={
                "provider",
                "mode",
                "notify_from",
                "settle_within",
                "zone",
                "look_back",
            },
        )


class DigestConfig(_Model):
    """Notices of one account that are due within `within` go in one message, at most `most`."""

    within: Duration
    most: Annotated[int, Field(ge=2, le=1000)] = 50


class KindConfig(_Model):
    """One kind of notice with its whole policy.

    `may_unsubscribe`: its messages say how to leave the topic. `critical`: the contact cap does not
    hold it back. `fail_over`: channels that are tried in turn once one has refused for good.
    """

    enabled: bool
    channel: Name
    notify_after: Duration
    give_up_after: Duration
    supersedes: bool
    catch_up: Literal["all", "latest", "skip"]
    catch_up_window: Duration
    max_occurrences: Annotated[int, Field(gt=0)]
    spread_per_minute: Annotated[int, Field(gt=0)]
    max_tries: Annotated[int, Field(gt=0, lt=1000)]
    max_claims: Annotated[int, Field(gt=0, lt=1000)]
    may_unsubscribe: bool = False
    critical: bool = False
    digest: DigestConfig | None = None
    fail_over: tuple[Name, ...] = ()


class BudgetConfig(_Model):
    """The rate of a channel account, shared by all senders.

    No second sees more than `per_second` messages. With a `burst` up to that many may go at once,
    as a provider allows that fills a bucket at the rate; without it they are spaced.
    """

    per_second: Annotated[float, Field(ge=0.02, le=10_000)]
    burst: Annotated[int, Field(gt=1, le=100_000)] | None = None

    def stored(self) -> dict[str, Any]:
        """The columns of `budget`."""
        if self.burst is not None:
            per_minute = max(1, int(self.per_second * 60))
            return {"capacity": self.burst, "refill_per_minute": per_minute, "slot_spacing": None}
        paced = self.per_second * PACED_SHARE
        return {
            "capacity": max(1, int(paced * _CLAIMED_AHEAD_S)),
            "refill_per_minute": max(1, int(paced * 60)),
            "slot_spacing": timedelta(seconds=1 / paced),
        }


def _some_time(duration: timedelta) -> timedelta:
    if duration <= timedelta(0):
        raise ValueError("expected more than nothing")
    return duration


class ChannelConfig(_Model):
    """One account of a channel; its login comes from the named connection.

    Of SMS: `max_segments`, beyond which a text is refused rather than paid for.
    Of a webhook channel: `safe_retry_for`, how long receivers are asked to remember ids, within
    which what may have been received is sent again; `retry_waits`, the waits before the second,
    third, … try; `disable_after`, after so long without any success an address is given up.
    """

    connection: str | None = None
    sender: str | None = None
    window_messages: Annotated[int, Field(gt=0, le=10_000)] = 50
    io_timeout_seconds: Annotated[float, Field(gt=0, le=120)] = 20
    relay_log: Path | None = None
    max_segments: Annotated[int, Field(gt=0, le=10)] = 3
    safe_retry_for: Annotated[Duration, After(_some_time)] | None = None
    retry_waits: (
        Annotated[
            tuple[Annotated[Duration, After(_some_time)], ...], Field(min_length=1, max_length=100)
        ]
        | None
    ) = None
    disable_after: Annotated[Duration, After(_some_time)] | None = None
    budget: BudgetConfig | None = None


class ContactCapConfig(_Model):
    """No account is sent more than `most` messages in any time of length `per`.

    Of one channel, or of all together. Critical kinds are not counted and not held back.
    """

    channel: Name | None = None
    most: Annotated[int, Field(gt=0, le=10_000)]
    per: Annotated[Duration, After(_cap_length)]


class SweepConfig(_Model):
    """How much one sweep takes, and for how long."""

    batch_size: Annotated[int, Field(gt=0, le=50_000)] = 500
    lease_seconds: Annotated[int, Field(ge=30, le=3600)] = 120
    time_budget_seconds: Annotated[int, Field(gt=0, le=900)] = 300
    senders: Annotated[int, Field(gt=0, le=64)] = 2
    horizon: Annotated[Duration, After(_horizon)] = timedelta(days=7)


class UnsubscribeConfig(_Model):
    """Where a recipient leaves a topic: the public address of the receiver.

    The password of the named connection is what the links are sealed with; in its extra `previous`,
    one or a list of those that are being rotated out.
    """

    url: Annotated[str, Field(pattern=r"^https?://[^\s?#]+$")]
    connection: Name


class WebhookConfig(_Model):
    """One endpoint that a provider posts its events to: `/webhooks/<endpoint>`.

    The named connection holds the secrets: the current one as its password, and in its extra
    `previous`, one or a list of those that are being rotated out; for PayPal, the CA in its extra
    `ca` (PEM). `url` is the endpoint's address as the provider was given it, for those that sign
    it: Square and Twilio. `max_per_second`, how many verified events a process takes; the rest is
    told to come again.
    """

    provider_account: Name
    scheme: Literal[
        "stripe", "standard", "adyen", "adyen_platform", "paypal", "square", "github", "twilio"
    ]
    connection: Name
    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$")] | None = None
    max_body_bytes: Annotated[int, Field(gt=0, le=1024 * 1024)] = 256 * 1024
    max_per_second: Annotated[float, Field(ge=0.01, le=10_000)] | None = None


class ProviderEventsConfig(_Model):
    """How received events are read: so many at once, each given up after so many failed reads."""

    batch_size: Annotated[int, Field(gt=0, le=10_000)] = 200
    lease_seconds: Annotated[int, Field(ge=60, le=3600)] = 600
    time_budget_seconds: Annotated[int, Field(gt=0, le=900)] = 120
    max_tries: Annotated[int, Field(gt=0, lt=1000)] = 12


class QuietHoursConfig(_Model):
    """Nothing is sent from `from` until before `until`, in the recipient's zone.

    Over midnight when `from` is the later. What is not named is all: region, channel, kind.
    """

    region: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    channel: Name | None = None
    kind: str | None = None
    from_local: Annotated[Annotated[time, BeforeValidator(parse_wall_time)], Field(alias="from")]
    until_local: Annotated[Annotated[time, BeforeValidator(parse_wall_time)], Field(alias="until")]


def _stated_quiet_hours(value: Any) -> Any:
    if value == "none":
        return ()
    if not isinstance(value, list | tuple):
        raise ValueError('expected "none", or tables [[quiet_hours]]')
    return value


# Empty: it was stated that there are none; None: nothing was stated.
QuietHours = Annotated[tuple[QuietHoursConfig, ...], BeforeValidator(_stated_quiet_hours)]


class SeverityConfig(_Model):
    """From which age and which difference on a discrepancy is high or critical.

    The differences are major units by currency; what is not stated makes nothing severe.
    """

    high_after: Duration | None = None
    critical_after: Duration | None = None
    high: Mapping[CurrencyCode, Decimal] = Field(default_factory=dict)
    critical: Mapping[CurrencyCode, Decimal] = Field(default_factory=dict)


class RoutingRule(_Model):
    """Booked payments that name no provider account go to this one when all that is stated fits."""

    provider_account: Name
    reference_prefix: str | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None = None

    def fits(self, reference: str, currency: str) -> bool:
        """Whether the rule takes a payment of that reference and currency."""
        return reference.startswith(self.reference_prefix or "") and self.currency in (
            None,
            currency,
        )


class RoutingConfig(_Model):
    """Rules in their order, then the default; without either the payment stays unrouted."""

    default: Name | None = None
    rules: tuple[RoutingRule, ...] = ()

    def route(self, reference: str, currency: str) -> str | None:
        """The provider account that is to settle such a payment, or None."""
        for rule in self.rules:
            if rule.fits(reference, currency):
                return rule.provider_account
        return self.default


def _kept(kept_for: timedelta) -> timedelta:
    # What a run of yesterday night wrote is still looked at by today's.
    if kept_for < timedelta(days=31):
        raise ValueError("expected a month or more (P31D)")
    return kept_for


class RetentionConfig(_Model):
    """How long what may go by age is kept; what is not stated is kept for ever."""

    entry_versions: Annotated[Duration, After(_kept)] | None = None
    webhook_bodies: Annotated[Duration, After(_kept)] | None = None


Attribute = Literal["region", "locale", "zone"]


class CohortConfig(_Model):
    """Customer accounts that stand in a mode of their own; all that is stated must fit.

    `accounts` is a list, `accounts_file` a file with an account a line; `percent` a share of all by
    a hash of cohort and account, so that a larger share keeps everybody who was in; `region`,
    `locale` and `zone` (one of them) are values of the account's contacts. `provider_accounts`
    limits it to changes at these.
    """

    mode: Literal["dry_run", "shadow", "live"]
    provider_accounts: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    accounts: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    accounts_file: Path | None = None
    percent: Annotated[Decimal, Field(ge=0, le=100, decimal_places=2)] | None = None
    region: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    locale: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    zone: Annotated[tuple[Zone, ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _states_who(self) -> Self:
        attributes = [self.region, self.locale, self.zone]
        given = [each for each in attributes if each is not None]
        if len(given) > 1:
            raise ValueError("expected one of region, locale, zone")
        if self.accounts is not None and self.accounts_file is not None:
            raise ValueError("expected accounts or accounts_file, not both")
        who = [self.accounts, self.accounts_file, self.percent, *given]
        if all(each is None for each in who):
            raise ValueError(
                "expected who is in it: accounts, accounts_file, percent, region, locale or zone"
            )
        return self

    @property
    def attribute(self) -> tuple[Attribute, tuple[str, ...]] | None:
        """The attribute of contacts that decides, with its values."""
        for name in get_args(Attribute):
            values = getattr(self, name)
            if values is not None:
                return name, values
        return None


class OldSenderConfig(_Model):
    """A system that tells the same customers while Duebook is rolled out.

    `asks`: whether it calls ask_to_send before it sends. `same_within`: sends of both that are not
    further apart count as the same time. `webhook`: the endpoint whose events are its sends.
    """

    asks: bool
    same_within: Duration = timedelta(days=1)
    webhook: Name | None = None


class Config(_Model):
    """The whole file."""

    provider_accounts: Mapping[Name, ProviderAccountConfig]
    kinds: Mapping[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")], KindConfig]
    channels: Mapping[Name, ChannelConfig] = Field(default_factory=dict)
    contact_caps: tuple[ContactCapConfig, ...] = ()
    unsubscribe: UnsubscribeConfig | None = None
    sweep: SweepConfig = SweepConfig()
    routing: RoutingConfig = RoutingConfig()
    severity: SeverityConfig = SeverityConfig()
    quiet_hours: QuietHours | None = None
    webhooks: Mapping[Name, WebhookConfig] = Field(default_factory=dict)
    provider_events: ProviderEventsConfig = ProviderEventsConfig()
    retention: RetentionConfig = RetentionConfig()
    cohorts: Mapping[Name, CohortConfig] = Field(default_factory=dict)
    old_senders: Mapping[Name, OldSenderConfig] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _observes_what_is_there(self) -> Self:
        for name, sender in self.old_senders.items():
            if sender.webhook is not None and sender.webhook not in self.webhooks:
                raise ValueError(f"old_senders.{name}.webhook: expected one of [webhooks]")
        return self


def load_config(path: Path | None = None) -> Config:
    """Read duebook.toml; None is the shipped one.

    Raises ConfigurationError: one line naming file, key and what was expected.
    """
    chosen = path or shipped_path()
    try:
        document = tomllib.loads(chosen.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{chosen}: {error.strerror or 'not readable'}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{chosen}: not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{chosen}: {error}") from None
    return parse_config(document, chosen.name)


def shipped_path() -> Path:
    """The file that comes with Duebook: at the root of a checkout, else inside the package."""
    here = Path(__file__).resolve()
    for candidate in (here.parents[2] / SHIPPED_NAME, here.parent / f"_{SHIPPED_NAME}"):
        if candidate.is_file():
            return candidate
    raise ConfigurationError(f"the shipped {SHIPPED_NAME} is not there; set DUEBOOK_CONFIG_FILE")


def parse_config(document: Mapping[str, Any], name: str) -> Config:
    """Validate a document that was read already; `name` stands for the file in an error."""
    try:
        config = Config.model_validate(document)
    except ValidationError as error:
        raise ConfigurationError(f"{name}: {_one_line(error.errors()[0])}") from None
    problem = next(_contradictions(config), None)
    if problem is not None:
        raise ConfigurationError(f"{name}: {problem}")
    return config


def _one_line(error: ErrorDetails) -> str:
    key = ".".join(str(part) for part in error["loc"] if part != "[key]")
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return f"{key} is missing"
    if kind == "extra_forbidden":
        return f"{key} is not a key that is known here"
    expected = str(context.get("error") or context.get("expected") or error["msg"])
    if context.get("expected"):
        expected = f"expected {expected}"
    return f"{key} = {_shown(error['input'])}: {expected[:1].lower()}{expected[1:]}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _contradictions(config: Config) -> Iterator[str]:
    for name, account in config.provider_accounts.items():
        where = f"provider_accounts.{name}.columns"
        if account.columns is not None:
            yield from _column_contradictions(where, account.columns)
        elif account.provider == "csv":
            yield f"{where} is missing, which a csv provider needs"
    if "internal" in config.channels or "hold_expiry" in config.kinds:
        yield "channels.internal and kinds.hold_expiry are what holds expire by: not for a file"
    yield from _kind_contradictions(config)
    yield from _webhook_contradictions(config)
    yield from _quiet_contradictions(config)
    yield from _cap_contradictions(config)
    routed = [rule.provider_account for rule in config.routing.rules]
    for target in [*routed, config.routing.default]:
        if target is not None and target not in config.provider_accounts:
            yield f"routing: provider account {target!r} is not in [provider_accounts]"


def _kind_contradictions(config: Config) -> Iterator[str]:
    for kind, policy in config.kinds.items():
        if policy.channel not in config.channels:
            yield f"kinds.{kind}.channel = {policy.channel!r}: expected one of [channels]"
        for channel in policy.fail_over:
            if channel not in config.channels:
                yield f"kinds.{kind}.fail_over = {channel!r}: expected one of [channels]"
        if len({policy.channel, *policy.fail_over}) <= len(policy.fail_over):
            yield f"kinds.{kind}.fail_over: expected other channels than its own, each once"
        if policy.may_unsubscribe and config.unsubscribe is None:
            yield f"kinds.{kind}.may_unsubscribe needs [unsubscribe]: where a topic is left"
        if policy.give_up_after <= timedelta(0):
            yield f"kinds.{kind}.give_up_after: expected more than nothing"
        if policy.catch_up_window < timedelta(minutes=2):
            yield f"kinds.{kind}.catch_up_window: expected at least two sweeps (PT2M)"


def _cap_contradictions(config: Config) -> Iterator[str]:
    channels = [cap.channel for cap in config.contact_caps]
    if len(set(channels)) < len(channels):
        yield "contact_caps: expected one for each channel, and one without"
    for channel in channels:
        if channel is not None and channel not in config.channels:
            yield f"contact_caps: channel {channel!r}: expected one of [channels]"


def _quiet_contradictions(config: Config) -> Iterator[str]:
    for number, window in enumerate(config.quiet_hours or ()):
        where = f"quiet_hours.{number}"
        if window.channel is not None and window.channel not in config.channels:
            yield f"{where}.channel = {window.channel!r}: expected one of [channels]"
        if window.kind is not None and window.kind not in config.kinds:
            yield f"{where}.kind = {window.kind!r}: expected one of [kinds]"
        if window.from_local == window.until_local:
            yield f"{where}.until: expected another time than from"


def _webhook_contradictions(config: Config) -> Iterator[str]:
    for endpoint, webhook in config.webhooks.items():
        if webhook.provider_account not in config.provider_accounts:
            yield (
                f"webhooks.{endpoint}.provider_account = {webhook.provider_account!r}: "
                "expected one of [provider_accounts]"
            )


def _column_contradictions(where: str, columns: CsvColumns) -> Iterator[str]:
    if not (columns.gross or columns.debit or columns.credit):
        yield f"{where}: amount is missing (or debit and credit)"
    if not isinstance(columns.entry_id, str) and not 1 <= len(columns.entry_id) <= 3:
        yield f"{where}.entry_id: expected one to three columns"
    if columns.decimal == columns.thousands:
        yield f"{where}: decimal and thousands are the same"
    if (columns.currency is None) == (columns.currency_code is None):
        yield f"{where}: expected one of currency (a column) and currency_code (of all rows)"
    if columns.direction is not None and not columns.gross:
        yield f"{where}.direction: is the sign of amount, which is missing"
    if not columns.header:
        wrong = next((c for c in columns.by_field().values() if not c.isdecimal()), None)
        if wrong is not None:
            yield f"{where}: {wrong!r} is no number; without a header columns are numbers from 1"
