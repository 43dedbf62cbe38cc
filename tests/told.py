"""What has been told to whoever listens, without a broker."""

from collections.abc import Mapping
from typing import Any


class Told:
    """Stands for the notifier.

    Attributes:
        sent: messages with their contexts.
    """

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send(self, message: Mapping[str, Any], context: Mapping[str, Any]) -> None:
        self.sent.append({**message, **context})

    @property
    def events(self) -> list[str]:
        return [message["event_type"] for message in self.sent]

    def payload(self, event: str) -> dict[str, Any]:
        """Fields of the only event of this type."""
        (message,) = [each for each in self.sent if each["event_type"] == event]
        fields: dict[str, Any] = message["payload"]["masakari_object.data"]
        return fields
