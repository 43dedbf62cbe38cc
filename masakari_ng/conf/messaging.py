"""Options of the message bus. Spec: rpc §1.1, §10.6."""

import os
import socket
import sys

from oslo_config import cfg

_DEFAULT = [
    cfg.HostAddressOpt(
        "host",
        default=socket.gethostname(),
        sample_default="<host name>",
        help="Name of this engine; its own queue is named after it. Unique, and the same after a"
        " restart.",
    ),
    cfg.StrOpt(
        "masakari_topic",
        default="ha_engine",
        deprecated_for_removal=True,
        deprecated_since="3.0.0",
        help="Queue that all engines share. API and engines must agree.",
    ),
    cfg.StrOpt(
        "transport_url",
        default="rabbit://",
        secret=True,
        help="URL of RabbitMQ: rabbit://USER:PASSWORD@HOST:5672/VHOST, or of several:"
        " rabbit://USER:PASSWORD@HOST1:5672,USER:PASSWORD@HOST2:5672/VHOST.",
    ),
    cfg.StrOpt(
        "control_exchange",
        default="masakari",
        help="Exchange of all messages. API and engines must agree.",
    ),
    cfg.IntOpt(
        "rpc_response_timeout", default=60, help="Seconds that a call waits for its answer."
    ),
    cfg.BoolOpt("rpc_ping_enabled", default=False, help="Engines answer oslo_rpc_server_ping."),
    cfg.IntOpt(
        "executor_thread_pool_size",
        default=64,
        deprecated_name="rpc_thread_pool_size",
        help="Messages that one engine works on at once; others wait in it.",
    ),
]

_RABBIT = [
    cfg.BoolOpt("amqp_durable_queues", default=False, help="Exchange and queues are durable."),
    cfg.BoolOpt("amqp_auto_delete", default=False, help="Exchange and queues are auto-delete."),
    cfg.BoolOpt("rabbit_quorum_queue", default=False, help="Queues are quorum queues."),
    cfg.IntOpt(
        "rabbit_quorum_delivery_limit",
        default=0,
        help="Deliveries of a message that a quorum queue attempts; 0: no limit.",
    ),
    cfg.IntOpt(
        "rabbit_quorum_max_memory_length",
        default=0,
        help="Messages that a quorum queue keeps in memory; 0: no limit.",
    ),
    cfg.IntOpt(
        "rabbit_quorum_max_memory_bytes",
        default=0,
        help="Bytes that a quorum queue keeps in memory; 0: no limit.",
    ),
    cfg.BoolOpt(
        "rabbit_transient_quorum_queue",
        default=False,
        help="Reply and fanout queues are quorum queues.",
    ),
    cfg.BoolOpt(
        "rabbit_stream_fanout",
        default=False,
        help="Engines share one fanout queue, a stream. Needs rabbit_qos_prefetch_count and"
        " rabbit_transient_quorum_queue.",
    ),
    cfg.BoolOpt(
        "use_queue_manager",
        default=False,
        help="Reply and fanout queues are numbered, and taken over after a restart.",
    ),
    cfg.StrOpt(
        "hostname",
        default=socket.gethostname(),
        sample_default="<host name>",
        help="First part of such names; unique together with the second.",
    ),
    cfg.StrOpt(
        "processname",
        default=os.path.basename(sys.argv[0]),
        sample_default="<program name>",
        help="Second part of such names.",
    ),
    cfg.BoolOpt("rabbit_ha_queues", default=False, help="Queues are mirrored."),
    cfg.IntOpt(
        "rabbit_qos_prefetch_count",
        default=0,
        help="Messages that a consumer holds at once; 0: any number.",
    ),
    cfg.BoolOpt(
        "enable_cancel_on_failover",
        default=False,
        help="The broker ends consumers when a mirrored queue fails over.",
    ),
    cfg.StrOpt(
        "kombu_compression", help="How bodies are compressed: gzip or bz2; unset: not at all."
    ),
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
    cfg.FloatOpt(
        "kombu_reconnect_splay",
        default=0.0,
        min=0.0,
        help="Seconds added to that, at most: a random share of them.",
    ),
    cfg.IntOpt(
        "kombu_missing_consumer_retry_timeout",
        default=60,
        deprecated_name="kombu_reconnect_timeout",
        help="Seconds for which a reply is tried whose queue is missing.",
    ),
    cfg.StrOpt(
        "kombu_failover_strategy",
        default="round-robin",
        choices=["round-robin", "shuffle"],
        help="Which of several brokers is tried next.",
    ),
    cfg.IntOpt(
        "rabbit_retry_interval",
        default=1,
        min=1,
        help="First wait in seconds between attempts to connect.",
    ),
    cfg.IntOpt(
        "rabbit_retry_backoff", default=2, min=0, help="Seconds by which that wait grows each time."
    ),
    cfg.IntOpt("rabbit_interval_max", default=30, min=1, help="Longest such wait in seconds."),
    cfg.StrOpt(
        "rabbit_login_method",
        default="AMQPLAIN",
        choices=["PLAIN", "AMQPLAIN", "EXTERNAL", "RABBIT-CR-DEMO"],
        help="How to log in to the broker; not RABBIT-CR-DEMO here.",
    ),
    cfg.BoolOpt("ssl", default=False, help="Speak TLS with the broker."),
    cfg.StrOpt("ssl_ca_file", default="", help="CA file for the broker; empty: the system's."),
    cfg.StrOpt("ssl_cert_file", default="", help="Client certificate; empty: none."),
    cfg.StrOpt("ssl_key_file", default="", help="Key of the client certificate."),
    cfg.BoolOpt(
        "ssl_enforce_hostname_verification",
        default=True,
        deprecated_for_removal=True,
        help="The broker's certificate must be for the name in transport_url.",
    ),
]

_NOTIFICATIONS = [
    cfg.MultiStrOpt(
        "driver",
        default=[],
        help="How versioned notifications leave: messagingv2, messaging, log or noop; none: they"
        " do not.",
    ),
    cfg.StrOpt(
        "transport_url", secret=True, help="Broker for them; unset: transport_url of [DEFAULT]."
    ),
    cfg.IntOpt("retry", default=-1, help="Attempts to send one after the first; -1: no limit."),
]

OPTIONS = {
    None: _DEFAULT,
    "oslo_messaging_rabbit": _RABBIT,
    "oslo_messaging_notifications": _NOTIFICATIONS,
}
