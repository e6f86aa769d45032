"""Adyen's settlement detail report: one CSV per merchant account and batch.

Columns are configurable and read by name. Source:
https://docs.adyen.com/reporting/settlement-reconciliation/transaction-level/settlement-details-report.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from duebook.settlements.base import EntryType
from duebook.settlements.delimited import Layout

COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "company_account": "Company Account",
        "merchant_account": "Merchant Account",
        "psp_reference": "Psp Reference",
        "merchant_reference": "Merchant Reference",
        "payment_method": "Payment Method",
        "creation_date": "Creation Date",
        "timezone": "TimeZone",
        "type": "Type",
        "modification_reference": "Modification Reference",
        "gross_currency": "Gross Currency",
        "gross_debit": "Gross Debit (GC)",
        "gross_credit": "Gross Credit (GC)",
        "exchange_rate": "Exchange Rate",
        "net_currency": "Net Currency",
        "net_debit": "Net Debit (NC)",
        "net_credit": "Net Credit (NC)",
        "commission": "Commission (NC)",
        "markup": "Markup (NC)",
        "scheme_fees": "Scheme Fees (NC)",
        "interchange": "Interchange (NC)",
        "payment_method_variant": "Payment Method Variant",
        "modification_merchant_reference": "Modification Merchant Reference",
        "batch_number": "Batch Number",
        "booking_date": "Booking Date",
        "booking_zone": "Booking Date TimeZone",
    }
)
_OPTIONAL: Final = frozenset(
    {
        "company_account",
        "merchant_account",
        "payment_method",
        "exchange_rate",
        "payment_method_variant",
        "modification_merchant_reference",
        "booking_date",
        "booking_zone",
    }
)
LAYOUT: Final = Layout(
    what="the columns of Adyen's settlement detail report",
    columns=COLUMNS,
    required=frozenset(COLUMNS) - _OPTIONAL,
)

TYPES: Final[Mapping[str, EntryType]] = MappingProxyType(
    {
        "Settled": "charge",
        "SettledBulk": "charge",
        "SettledExternally": "charge",
        "SettledReversed": "charge",
        "Refunded": "refund",
        "RefundedBulk": "refund",
        "RefundedExternally": "refund",
        "RefundedReversed": "refund",
        "Chargeback": "chargeback",
        "ChargebackExternally": "chargeback",
        "SecondChargeback": "chargeback",
        "ChargebackReversed": "chargeback_reversal",
        "ChargebackReversedExternally": "chargeback_reversal",
        "Fee": "fee",
        "InvoiceDeduction": "fee",
        "MiscCosts": "fee",
        "PaymentCost": "fee",
        "SettleCost": "fee",
        "AuthorisationSchemeFee": "fee",
        "MerchantPayout": "payout",
        "InternalCompanyPayout": "payout",
        "Balancetransfer": "transfer",
        "PaidOut": "transfer",
        "PaidOutReversed": "transfer",
        "BPPaidOut": "transfer",
        "EpaPaid": "transfer",
        "BankInstructionReturned": "transfer",
        "ReserveAdjustment": "reserve",
        "DepositCorrection": "reserve",
        "ManualCorrected": "adjustment",
        "MatchedStatement": "adjustment",
    }
)
"""Record type to entry type; a type that is not here is kept as `other`. PaidOut pays a shopper, so
it is no payout of the batch."""

STAGE: Final = "stage_adyen"
REJECT: Final = "reject_adyen"
BODY: Final = "create_adyen_body"
IDENTITY: Final = "create_adyen_identity"
