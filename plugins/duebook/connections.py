"""Connections as Airflow writes them in the environment, read without Airflow.

`AIRFLOW_CONN_<ID>` holds a URI or JSON, by the rules of Airflow 3 (airflow.sdk Connection): so that
the command line and a task of a DAG use the very same definition.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from duebook.errors import ConfigurationError

PREFIX: Final = "AIRFLOW_CONN_"
_EXTRA_KEY: Final = "__extra__"


@dataclass(frozen=True, slots=True)
class ConnectionSpec:
    """One connection. In the URI form every value of `extra` is text."""

    conn_id: str
    conn_type: str
    host: str = ""
    port: int | None = None
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    schema: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


def connection_from_environment(
    conn_id: str, environment: Mapping[str, str]
) -> ConnectionSpec | None:
    """The connection `conn_id` of `environment` (os.environ), or None when it is not defined.

    Raises ConfigurationError naming the variable and what is wrong with it, never its value.
    """
    variable = PREFIX + conn_id.upper()
    value = environment.get(variable, "").strip()
    if not value:
        return None
    try:
        if value.startswith("{"):
            return _from_json(conn_id, value)
        return _from_uri(conn_id, value)
    except _FormatError as error:
        raise ConfigurationError(f"{variable}: {error}") from None


class _FormatError(Exception):
    pass


def _from_uri(conn_id: str, value: str) -> ConnectionSpec:
    scheme, separator, rest = value.partition("://")
    if not separator:
        raise _FormatError("neither a URI nor JSON")
    # Airflow's conn_type://protocol://host form: the host keeps its protocol.
    protocol, inner, after = rest.partition("://")
    if inner and ("?" in protocol or "/" in protocol):
        protocol, inner, after = "", "", rest
    if inner and ("@" in protocol or ":" in protocol):
        raise _FormatError("not a valid URI")
    try:
        parts = urlsplit("//" + (after if inner else rest))
        port = parts.port
    except ValueError:
        raise _FormatError("not a valid URI (host or port)") from None
    host = _host(parts)
    return ConnectionSpec(
        conn_id=conn_id,
        conn_type=_conn_type(scheme),
        host=f"{protocol}://{host}" if inner and host else host,
        port=port,
        login=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        schema=unquote(parts.path[1:]) or None,
        extra=_query_extra(parts.query),
    )


def _host(parts: SplitResult) -> str:
    host = unquote(parts.hostname or "")
    if "/" not in host:
        return host
    # A path as the host (a socket) keeps its case, which urlsplit lowers.
    return unquote(parts.netloc.rpartition("@")[2].partition(":")[0])


def _query_extra(query: str) -> Mapping[str, Any]:
    if not query:
        return {}
    found = dict(parse_qsl(query, keep_blank_values=True))
    if _EXTRA_KEY in found:
        return _extra(found[_EXTRA_KEY])
    return found


def _from_json(conn_id: str, value: str) -> ConnectionSpec:
    try:
        fields = json.loads(value)
    except ValueError:
        raise _FormatError("not valid JSON") from None
    if "uri" in fields:
        raise _FormatError("uri inside JSON is not supported, give one or the other")
    port = fields.get("port")
    try:
        port = None if port in (None, "") else int(port)
    except (TypeError, ValueError):
        raise _FormatError("port is not a number") from None
    return ConnectionSpec(
        conn_id=conn_id,
        conn_type=_conn_type(_text(fields, "conn_type") or ""),
        host=_text(fields, "host") or "",
        port=port,
        login=_text(fields, "login"),
        password=_text(fields, "password"),
        schema=_text(fields, "schema"),
        extra=_extra(fields.get("extra")),
    )


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None or isinstance(value, str):
        return value or None
    raise _FormatError(f"{name} is not text")


def _extra(value: object) -> Mapping[str, Any]:
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise _FormatError("extra is not valid JSON") from None
    if not isinstance(value, dict):
        raise _FormatError("extra is not an object")
    return value


def _conn_type(scheme: str) -> str:
    return "postgres" if scheme == "postgresql" else scheme.replace("-", "_")
