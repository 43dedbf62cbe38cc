"""Options of the message bus. Spec: rpc §1.1."""

import socket

from oslo_config import cfg

_DEFAULT = [
    cfg.HostAddressOpt(
        "host",
        default=socket.gethostname(),
        sample_default="<host name>",
        help="Name of this engine: its own queue is named after it.",
    ),
    cfg.StrOpt(
        "masakari_topic",
        default="ha_engine",
        deprecated_for_removal=True,
        deprecated_since="3.0.0",
        help="Topic on which engines listen.",
    ),
    cfg.StrOpt(
        "transport_url", default="rabbit://", secret=True, help="URL of the message broker."
    ),
    cfg.StrOpt("control_exchange", default="masakari", help="Topic exchange of all messages."),
    cfg.IntOpt("rpc_response_timeout", default=60, help="Seconds that a call waits."),
    cfg.IntOpt(
        "executor_thread_pool_size",
        default=64,
        deprecated_name="rpc_thread_pool_size",
        help="Messages that one engine works on at once.",
    ),
]

_RABBIT = [
    cfg.BoolOpt("amqp_durable_queues", default=False, help="Exchange and queues are durable."),
    cfg.BoolOpt("amqp_auto_delete", default=False, help="Exchange and queues are auto-delete."),
    cfg.BoolOpt("rabbit_quorum_queue", default=False, help="Queues are quorum queues."),
    cfg.IntOpt(
        "rabbit_transient_queues_ttl",
        default=1800,
        min=0,
        help="Seconds after which an unused reply or fanout queue goes; 0: never.",
    ),
    cfg.IntOpt(
        "heartbeat_timeout_threshold",
        default=60,
        help="Seconds after which a silent broker counts as gone; 0: no heartbeat.",
    ),
    cfg.IntOpt("heartbeat_rate", default=3, help="Heartbeats in that time."),
    cfg.FloatOpt(
        "kombu_reconnect_delay",
        default=1.0,
        min=0.0,
        max=4.5,
        help="Seconds to wait before a reconnect.",
    ),
    cfg.IntOpt("rabbit_retry_interval", default=1, min=1, help="First wait between attempts."),
    cfg.IntOpt("rabbit_retry_backoff", default=2, min=0, help="Growth of that wait."),
    cfg.IntOpt("rabbit_interval_max", default=30, min=1, help="Longest wait between attempts."),
    cfg.StrOpt(
        "rabbit_login_method",
        default="AMQPLAIN",
        choices=["PLAIN", "AMQPLAIN", "EXTERNAL", "RABBIT-CR-DEMO"],
        help="How to log in to the broker.",
    ),
    cfg.BoolOpt("ssl", default=False, help="Speak TLS with the broker."),
    cfg.StrOpt("ssl_ca_file", default="", help="CA file for the broker."),
    cfg.StrOpt("ssl_cert_file", default="", help="Client certificate."),
    cfg.StrOpt("ssl_key_file", default="", help="Key of the client certificate."),
    cfg.BoolOpt(
        "ssl_enforce_hostname_verification",
        default=True,
        help="The broker's certificate must be for the name in transport_url.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Make the options of this module known to `conf`."""
    conf.register_opts(_DEFAULT)
    conf.register_opts(_RABBIT, group="oslo_messaging_rabbit")
