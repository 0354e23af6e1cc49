"""How an application's work reaches Rota: by its own database, or by a server's HTTP API."""

from rota.application.connection import Connection
from rota.clock import Clock, SystemClock
from rota.ids import new_process_name
from rota.worker.gateway import Gateway
from rota.worker.session import AttemptSession, open_session
from rota.worker.store_gateway import StoreGateway


class Work(Connection):
    """The gateway of an application, and attempts that messages ask for."""

    _gateway: Gateway | None = None

    @property
    def gateway(self) -> Gateway:
        """To the server that `ROTA_SERVER_URL` names, else to the database. Made at the first look.

        Raises `WrongSetting` for an address that is none, and `StoreUnavailable`.
        """
        with self._lock:
            if self._gateway is None:
                url = self.settings.server_url
                self._gateway = StoreGateway(self.context.store) if url is None else _http_gateway(url)
            return self._gateway

    def open_attempt(self, message: object) -> AttemptSession | None:
        """The attempt that a message asks for, open; None: the message is a duplicate, and there is nothing to do.

        ::

            attempt = app.open_attempt(message)
            if attempt is not None:
                with attempt as ctx:
                    attempt.result = work(ctx.params)

        While the block runs its lease is kept by heartbeats; at its end the attempt is settled, as failed where
        something was raised. Raises `InvalidRequest` for what is no message, and `RotaError` where Rota is out of
        reach: hand the message back then, so that it comes again.
        """
        return open_session(
            self.gateway, message, worker=new_process_name("consumer"), clock=self._work_clock
        )

    @property
    def _work_clock(self) -> Clock:
        """The database's clock; where work goes by a server, whose own clock decides, this machine's."""
        return self.context.clock if self.settings.server_url is None else SystemClock()

    def close(self) -> None:
        with self._lock:
            gateway, self._gateway = self._gateway, None
            if gateway is not None:
                gateway.close()
        super().close()


def _http_gateway(url: str) -> Gateway:
    from rota.worker.http_gateway import HttpGateway  # noqa: PLC0415 - its client loads only where one asks a server

    return HttpGateway(url)
