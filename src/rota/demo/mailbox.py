"""A real SMTP server on loopback that keeps what it receives, and can refuse the next mail."""

import socket
from email import message_from_bytes
from email.message import Message
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rota.domain.errors import RotaError

if TYPE_CHECKING:
    from aiosmtpd.smtp import SMTP, Envelope, Session


class DemoIncomplete(RotaError):
    """The demonstration's mail server is not installed: `pip install 'rota[demo]'`."""


class Mailbox:
    """Use it as a context manager; `port` is where it listens."""

    def __init__(self) -> None:
        try:
            from aiosmtpd.controller import Controller  # noqa: PLC0415 - an extra that only the demonstration needs
        except ModuleNotFoundError:
            raise DemoIncomplete("aiosmtpd is missing; install it by `pip install 'rota[demo]'`.") from None
        self.mails: list[Message] = []
        self.refusals = 0
        self._refuse_next = 0
        self.port = _free_port()
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)

    def refuse_next(self) -> None:
        """Answers the next mail by 451, as a server does that has a bad day."""
        self._refuse_next += 1

    def ids(self) -> list[str]:
        """The Message-IDs received, in order."""
        return [str(mail["Message-ID"]) for mail in self.mails]

    async def handle_DATA(  # noqa: N802 - the name is the server library's
        self, server: "SMTP", session: "Session", envelope: "Envelope"
    ) -> str:
        del server, session
        if self._refuse_next:
            self._refuse_next -= 1
            self.refusals += 1
            return "451 try again later"
        content = envelope.content
        self.mails.append(
            message_from_bytes(content if isinstance(content, bytes) else (content or "").encode())
        )
        return "250 accepted"

    def __enter__(self) -> Self:
        self._controller.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._controller.stop()


def _free_port() -> int:
    """The server library wants to be told its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
