"""Signatures of webhooks, as Standard Webhooks 1.0 has them (https://www.standardwebhooks.com).

HMAC-SHA256 of `<id>.<timestamp>.<body>`, by each secret one, newest first; a receiver accepts any that it can verify,
so a secret is changed without a moment in which either side refuses the other.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime

from rota.domain.errors import WrongSetting
from rota.domain.instants import to_millis

SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets begin with, not one
SECRET_BYTES_MIN = 16
VERSION = "v1"


def signature_headers(
    event_id: str, body: bytes, *, secrets: Sequence[bytes], now: datetime
) -> dict[str, str]:
    """The id and the time of the try, and where there are secrets the signatures by them."""
    timestamp = str(to_millis(now) // 1000)
    headers = {"webhook-id": event_id, "webhook-timestamp": timestamp}
    if secrets:
        signed = f"{event_id}.{timestamp}.".encode() + body
        headers["webhook-signature"] = " ".join(f"{VERSION},{_sign(signed, secret)}" for secret in secrets)
    return headers


def read_secrets(names: Sequence[str], environment: Mapping[str, str]) -> list[bytes]:
    """The secrets that those environment variables hold. Raises `WrongSetting`, which never says what one holds."""
    return [_read_secret(name, environment.get(name)) for name in names]


def _read_secret(name: str, value: str | None) -> bytes:
    if not value:
        raise WrongSetting(
            f"The environment variable {name} is not set in the relay; give it the webhook's secret, whsec_..."
        )
    try:
        secret = base64.b64decode(value.strip().removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) < SECRET_BYTES_MIN:
        raise WrongSetting(
            f"The environment variable {name} of the relay holds no secret of Standard Webhooks: "
            f"whsec_ and the base64 of at least {SECRET_BYTES_MIN} bytes, better 32."
        )
    return secret


def _sign(signed: bytes, secret: bytes) -> str:
    return base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
