"""SMTP servers that misbehave on purpose, and a certificate for those that don't."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HANG_UP = "HANG UP"
HANG = "HANG"
WAIT = "WAIT"
PIPELINING = "250-hostile.localhost\r\n250-PIPELINING\r\n250 8BITMIME"


@dataclass
class Script:
    """What a hostile server says at each step: a reply, HANG_UP (close), or HANG (say nothing).

    WAIT is the usual reply, but not before release(). `refused` are recipients that get a 550.
    `only_first`: the misbehaviour is for the first connection, later ones are served well.
    """

    greeting: str = "220 hostile.localhost ESMTP"
    ehlo: str = "250-hostile.localhost\r\n250 8BITMIME"
    mail: str = "250 2.1.0 Ok"
    rcpt: str = "250 2.1.5 Ok"
    data: str = "354 End data with <CR><LF>.<CR><LF>"
    end: str = "250 2.0.0 Ok: queued as HOSTILE0001"
    hang_up_in_text: bool = False
    hang_up_after_each: bool = False
    only_first: bool = False
    refused: frozenset[str] = frozenset()


@dataclass
class HostileServer:
    """One running script and what it saw."""

    script: Script
    port: int = 0
    connections: int = 0
    texts: list[bytes] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    _hanging: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        script = self.script
        if script.only_first and self.connections > 1:
            script = Script(ehlo=PIPELINING if script.ehlo == PIPELINING else Script.ehlo)
        try:
            await self._talk(script, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, _HungUpError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _talk(
        self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await self._say(writer, script.greeting)
        while line := (await reader.readline()).decode().strip():
            self.commands.append(line)
            verb = line.split()[0].upper()
            if verb == "QUIT":
                await self._say(writer, "221 Bye")
                return
            if verb == "RCPT" and line[9:-1] in script.refused:
                await self._say(writer, "550 5.1.1 no such user")
                continue
            await self._say(writer, self._answer(script, verb))
            if verb == "DATA" and script.data.startswith("354"):
                await self._take_text(script, reader, writer)

    def _answer(self, script: Script, verb: str) -> str:
        known = {
            "EHLO": script.ehlo,
            "MAIL": script.mail,
            "RCPT": script.rcpt,
            "DATA": script.data,
            "RSET": "250 Ok",
        }
        return known.get(verb, "502 5.5.1 what?")

    async def _take_text(
        self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if script.hang_up_in_text:
            await reader.read(1)
            raise _HungUpError
        text = b""
        while (line := await reader.readline()) != b".\r\n":
            if not line:
                raise _HungUpError
            text += line
        self.texts.append(text)
        await self._say(writer, script.end)
        if script.hang_up_after_each:
            raise _HungUpError

    async def _say(self, writer: asyncio.StreamWriter, reply: str) -> None:
        if reply == HANG_UP:
            raise _HungUpError
        if reply == WAIT:
            await self._hanging.wait()
            reply = Script.end
        if reply == HANG:
            await self._hanging.wait()
            raise _HungUpError
        writer.write(reply.encode() + b"\r\n")
        await writer.drain()

    def release(self) -> None:
        self._hanging.set()


class _HungUpError(Exception):
    pass


@contextlib.asynccontextmanager
async def hostile(script: Script) -> AsyncIterator[HostileServer]:
    server = HostileServer(script)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        server.release()
        listener.close()


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate of localhost, its own authority."""

    ca_file: Path
    server_context: Callable[[], ssl.SSLContext]


def make_certificate(folder: Path, *, name: str = "localhost") -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(name)]
    if name == "localhost":
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    ca_file, key_file = folder / f"{name}.pem", folder / f"{name}.key"
    ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )

    def server_context() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(ca_file, key_file)
        return context

    return Certificate(ca_file, server_context)
