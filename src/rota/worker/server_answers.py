"""A server's address, and what its answers mean to those who ask."""

import json
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from rota.domain.errors import MalformedBody, RotaError, WrongSetting

SHOWN_CHARACTERS_MAX = 500
REFUSALS = frozenset({413, 422})
PROBLEM_PREFIX = "urn:rota:problem:"
"""How the type of a problem begins that a server of Rota tells of."""


class ServerUnavailable(RotaError):
    """The server cannot be reached, or cannot answer at the moment; ask again later.

    So is whatever a proxy may say while a server is replaced behind it: 404, 403, 401, 400. To believe it would make a
    failure of work that was done.
    """


class ServerRefused(RotaError):
    """The server has read the request and does not take it; the message is its own. To repeat it is useless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where a server answers, beneath `path`."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Raises `WrongSetting`."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise WrongSetting(f"The server's URL {url!r} is none: {error}.") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise WrongSetting(
                f"The server's URL {url!r} is none; write it as http://127.0.0.1:8080 (ROTA_SERVER_URL)."
            )
        if parts.username is not None or parts.password is not None:
            raise WrongSetting("The server's URL names a user, which a worker does not send; leave it out.")
        default = 443 if parts.scheme == "https" else 80
        return cls(
            scheme=parts.scheme, host=parts.hostname, port=port or default, path=parts.path.rstrip("/")
        )

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    def path_of(self, path: str) -> str:
        return f"{self.path}{path}"


def read_answer(address: ServerAddress, path: str, *, status: int, data: bytes) -> dict[str, object]:
    """The members of an answer. Raises `ServerUnavailable`, `ServerRefused`, `MalformedBody`."""
    if 200 <= status < 300:
        found = _members(data)
        if found is None:
            raise MalformedBody(f"{address.url}{path} answers no JSON object; is it a server of Rota?")
        return found
    detail = _detail(data)
    if status in REFUSALS or (status == 400 and _is_of_rota(data)):
        raise ServerRefused(f"{address.url}{path} answers {status}: {detail}")
    if status == 404:
        raise ServerUnavailable(
            f"{address.url}{path} does not exist; is it a server of Rota? It says: {detail}"
        )
    raise ServerUnavailable(f"{address.url}{path} answers {status}: {detail}")


def _is_of_rota(data: bytes) -> bool:
    """Whether it is a problem that a server of Rota tells of, and nobody on the way to it."""
    return str((_members(data) or {}).get("type")).startswith(PROBLEM_PREFIX)


def _members(data: bytes) -> dict[str, object] | None:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _detail(data: bytes) -> str:
    """What a problem says, with its fields where they are several."""
    problem = _members(data) or {}
    detail, errors = problem.get("detail"), problem.get("errors")
    if not isinstance(detail, str):
        return data[:SHOWN_CHARACTERS_MAX].decode(errors="replace").strip() or "nothing"
    if isinstance(errors, list) and len(errors) > 1:
        fields = [item for item in errors if isinstance(item, dict)]
        detail += " " + " ".join(f"{item.get('field')}: {item.get('message')}" for item in fields)
    return detail[:SHOWN_CHARACTERS_MAX]
