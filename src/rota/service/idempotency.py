"""A repeated request: the answer that was given to an Idempotency-Key is given again, for 24 hours."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from rota.domain.errors import FieldError, InvalidRequest, RotaError
from rota.domain.identity import digest_of
from rota.domain.json_text import JsonText, encode_json
from rota.service.context import Context
from rota.store.port import IdempotencyRecord

IDEMPOTENCY_KEPT = timedelta(hours=24)
IDEMPOTENCY_KEY_CHARACTERS_MAX = 255


class KeyReused(RotaError):
    """The Idempotency-Key was used with another request within 24 hours; choose a new key for a new request."""


def check_key(key: str) -> None:
    """Raises `InvalidRequest`."""
    if not 0 < len(key) <= IDEMPOTENCY_KEY_CHARACTERS_MAX or not key.isprintable() or not key.isascii():
        message = f"Give 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} printable ASCII characters."
        raise InvalidRequest(FieldError("Idempotency-Key", message))


def kept_answer(context: Context, key: str, digest: str, *, now: datetime) -> JsonText | None:
    """The answer that this request was given before. Raises `KeyReused` where the key came with another one."""
    record = context.store.get_idempotency(key, now=now)
    if record is None:
        return None
    if record.request_digest != digest:
        raise KeyReused(f"The Idempotency-Key {key!r} was used with another request; choose a new key.")
    return record.answer


def record_of(key: str, digest: str, answer: JsonText, *, now: datetime) -> IdempotencyRecord:
    return IdempotencyRecord(key=key, request_digest=digest, answer=answer, expires_at=now + IDEMPOTENCY_KEPT)


def request_digest(operation: str, body: Mapping[str, object]) -> str:
    """Of the operation and what it was asked."""
    return digest_of(encode_json([operation, dict(body)]))
