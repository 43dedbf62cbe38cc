"""Options that only masakari-ng has; upstream ignores their section."""

from oslo_config import cfg, types

from masakari_ng.domain import Correction

GROUP = "masakari_ng"

_ALL = "all"

_OPTIONS = [
    cfg.ListOpt(
        "corrections",
        default=[],
        item_type=types.String(choices=[_ALL, *Correction]),
        help="Mistakes of Masakari's that are to be mended: all, or some of"
        f" {', '.join(Correction)}. None by default: everything that clients see is as Masakari has"
        " it. docs/differences.md explains each.",
    ),
    cfg.IntOpt(
        "claim_heartbeat",
        default=15,
        min=1,
        help="Seconds between two signs of life of an engine that works on notifications.",
    ),
    cfg.IntOpt(
        "claim_timeout",
        default=60,
        min=2,
        help="Seconds without a sign of life after which another engine takes over. At least"
        " three times claim_heartbeat.",
    ),
    cfg.FloatOpt(
        "cast_timeout",
        default=2.0,
        min=0.1,
        help="Seconds that a report waits for the broker; later the periodic task finds it.",
    ),
    cfg.IntOpt(
        "event_buffer",
        default=1000,
        min=1,
        help="Versioned notifications that wait for the broker; further ones are dropped.",
    ),
    cfg.IntOpt(
        "nova_connect_timeout",
        default=10,
        min=1,
        help="Seconds to connect to Nova or Keystone.",
    ),
    cfg.IntOpt(
        "nova_read_timeout",
        default=180,
        min=1,
        help="Seconds to wait for an answer of Nova or Keystone.",
    ),
    cfg.HostAddressOpt(
        "metrics_listen",
        default="127.0.0.1",
        help="Address where Prometheus reads the metrics of this service. Who can reach it sees"
        " the names of segments.",
    ),
    cfg.PortOpt(
        "metrics_port",
        default=0,
        help="Port for the same; 0 measures nothing. API and engine on one host need different"
        " ones. docs/metrics.md explains each metric.",
    ),
]

OPTIONS = {GROUP: _OPTIONS}


def corrections(conf: cfg.ConfigOpts) -> frozenset[Correction]:
    """What the operator wants mended."""
    named = conf.masakari_ng.corrections
    return frozenset(Correction if _ALL in named else map(Correction, named))
