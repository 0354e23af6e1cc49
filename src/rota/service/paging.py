"""The opaque text that names a place in a list: base64url of canonical JSON, the same for HTTP and the command line."""

import base64
import binascii

from rota.domain.errors import FieldError, InvalidRequest, MalformedBody, TooLarge
from rota.domain.json_text import decode_json, encode_json
from rota.service.representation import Wire

LIMIT_DEFAULT = 50
LIMIT_MAX = 200
CURSOR_BYTES_MAX = 4_096


def encode_cursor(place: Wire) -> str:
    """The text of a place, safe in a query."""
    return base64.urlsafe_b64encode(encode_json(place).encode()).decode().rstrip("=")


def decode_cursor(text: str) -> object:
    """The place that a text names; the use case judges its members. Raises `InvalidRequest` naming `cursor`."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        decoded = base64.b64decode(padded, altchars=b"-_", validate=True)
        place: object = decode_json(decoded, bytes_max=CURSOR_BYTES_MAX)
    except (UnicodeError, binascii.Error, MalformedBody, TooLarge):
        place = None
    if not isinstance(place, dict) or encode_cursor(place) != text:
        raise broken_cursor()
    return place


def broken_cursor() -> InvalidRequest:
    return InvalidRequest(FieldError("cursor", "Give a next_cursor of this list as it was, or leave it out."))
