"""Signatures of webhooks, verified by the library that receivers use."""

import base64
from datetime import timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from rota.clock import SystemClock
from rota.delivery.signing import read_secrets, signature_headers
from rota.domain.errors import WrongSetting

OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()
BODY = '{"a":"ü"}'.encode()


def test_a_receiver_that_knows_either_secret_verifies_while_they_are_changed() -> None:
    secrets = read_secrets(["NEW", "OLD"], {"NEW": NEW, "OLD": OLD})
    headers = signature_headers("r-1.1.x/1", BODY, secrets=secrets, now=SystemClock().now())
    for known in (OLD, NEW):
        assert Webhook(known).verify(BODY, headers) == {"a": "ü"}


def test_a_receiver_with_another_secret_does_not() -> None:
    headers = signature_headers(
        "r/1", BODY, secrets=read_secrets(["NEW"], {"NEW": NEW}), now=SystemClock().now()
    )
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(BODY, headers)


@pytest.mark.parametrize("changed", ["webhook-id", "webhook-timestamp", "body"])
def test_what_is_changed_on_the_way_is_not_verified(changed: str) -> None:
    now = SystemClock().now()
    headers = signature_headers("r/1", BODY, secrets=read_secrets(["NEW"], {"NEW": NEW}), now=now)
    body = BODY
    if changed == "body":
        body = b'{"a":1}'
    elif changed == "webhook-id":
        headers[changed] = "r/2"
    else:
        headers[changed] = str(int(headers[changed]) + 1)
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(body, headers)


def test_an_old_message_is_not_verified() -> None:
    long_ago = SystemClock().now() - timedelta(hours=1)
    headers = signature_headers("r/1", BODY, secrets=read_secrets(["NEW"], {"NEW": NEW}), now=long_ago)
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(BODY, headers)


def test_without_secrets_nothing_is_signed() -> None:
    headers = signature_headers("r/1", BODY, secrets=[], now=SystemClock().now())
    assert set(headers) == {"webhook-id", "webhook-timestamp"}


@pytest.mark.parametrize("value", [None, "", "hunter2", "whsec_", "whsec_" + "a" * 20, "whsec_ünïcode"])
def test_what_is_no_secret_is_told_by_its_variable_and_never_shown(value: str | None) -> None:
    with pytest.raises(WrongSetting, match="SHOP_SECRET") as caught:
        read_secrets(["SHOP_SECRET"], {} if value is None else {"SHOP_SECRET": value})
    assert not value or value.removeprefix("whsec_") == "" or value not in str(caught.value)
