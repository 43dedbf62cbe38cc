"""Options of the engine service. Spec: configuration §1, recovery §14."""

from oslo_config import cfg

_DEFAULT = [
    cfg.BoolOpt(
        "log_options", default=True, help="Log all options at DEBUG when a service starts."
    ),
    cfg.StrOpt(
        "notification_driver",
        default="taskflow_driver",
        help="Entry point of the group masakari.driver that runs recoveries.",
    ),
    cfg.BoolOpt(
        "periodic_enable",
        default=True,
        help="Run the periodic tasks: retries, and the end of notifications that are too old.",
    ),
    cfg.IntOpt(
        "periodic_interval_max",
        default=300,
        help="Longest pause in seconds between two looks at the periodic tasks.",
    ),
    cfg.IntOpt(
        "periodic_fuzzy_delay",
        default=60,
        help="The periodic tasks begin after a random delay of up to so many seconds; 0: none.",
    ),
    cfg.IntOpt(
        "process_unfinished_notifications_interval",
        default=120,
        help="Seconds between two retries of failed and forgotten notifications.",
    ),
    cfg.IntOpt(
        "retry_notification_new_status_interval",
        default=60,
        mutable=True,
        help="Age in seconds from which a new notification counts as forgotten.",
    ),
    cfg.IntOpt(
        "check_expired_notifications_interval",
        default=600,
        help="Seconds between two looks for expired notifications.",
    ),
    cfg.IntOpt(
        "notifications_expired_interval",
        default=86400,
        help="Age in seconds at which an unfinished notification is given up.",
    ),
    cfg.IntOpt(
        "graceful_shutdown_timeout",
        default=60,
        help="Seconds that running recoveries, or requests of the API, get to end after SIGTERM."
        " What an engine has not done by then, another engine or its restart takes over.",
    ),
]

OPTIONS = {None: _DEFAULT}
