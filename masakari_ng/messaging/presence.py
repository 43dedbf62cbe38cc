"""Looks at the queue of the engines without declaring anything or taking a message."""

from masakari_ng import errors
from masakari_ng.messaging.connection import Broker, release

_NO_SUCH_QUEUE = "404"


def engines(broker: Broker, timeout: float) -> tuple[int, int]:
    """How many engines read requests, of Masakari as well, and how many requests wait for them.

    Args:
        broker: where to look.
        timeout: seconds to connect, and for the answer.

    Raises:
        BrokerUnavailable: it cannot be asked, or refuses.
    """
    link = broker.connect(timeout=timeout)
    try:
        name = broker.topology.request_box().queue.name
        declared = link.default_channel.queue_declare(name, passive=True)
    except (TimeoutError, *link.connection_errors, *link.channel_errors) as error:
        if str(getattr(error, "reply_code", "")) == _NO_SUCH_QUEUE:
            return 0, 0
        raise errors.BrokerUnavailable(str(error)) from error
    finally:
        release(link)
    return int(declared.consumer_count), int(declared.message_count)
