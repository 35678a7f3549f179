"""Secrets: known by the names of their options, given only by reference, never shown."""

from __future__ import annotations

import re

# `ssl.truststore.location` or `password_file` name a place, not a secret.
_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)$|(^|[_.-])pass$|secret|token$|credential|jaas|\.sas\.|"
    r"(api|access|account|private|keystore)[_.-]?key",
    re.IGNORECASE,
)
_PLACE_KEY = re.compile(r"(file|path|location|dir|uri|url|class|type|provider|providers|impl)$", re.IGNORECASE)
# A SQL text may compare a column called password; an address or a JAAS line that gives one is a secret.
_SECRET_VALUE = re.compile(
    r"AKIA[0-9A-Z]{16}|://[^/\s:@]*:[^/\s@]+@|[?&;](?:password|pwd|sig)=[^\s;&]+|LoginModule\b.*?password=\"?[^\s;&\"]+",
    re.IGNORECASE,
)

MASK = "********"


def is_secret_key(key: str) -> bool:
    """Whether an option of this name holds a secret."""
    return bool(_SECRET_KEY.search(key)) and not _PLACE_KEY.search(key)


def holds_secret(value: str) -> bool:
    """Whether a text carries a credential in itself (an AWS key, a URL with a password)."""
    return bool(_SECRET_VALUE.search(value))


class Referenced(str):
    """A text that came from `${env:…}` or `${file:…}`; the reference may be shown, the value not."""

    reference: str

    def __new__(cls, value: str, *, reference: str) -> Referenced:
        made = super().__new__(cls, value)
        made.reference = reference
        return made


def hide(text: str) -> str:
    """The text with every credential that can be told by its form replaced."""
    return _SECRET_VALUE.sub(MASK, text)


def masked(options: dict[str, str]) -> dict[str, str]:
    """The same options with every secret replaced."""
    return {key: MASK if is_secret_key(key) or holds_secret(value) else value for key, value in options.items()}
