"""Upstream's options that are accepted and do nothing here, each with the reason."""

from collections.abc import Sequence

from oslo_config import cfg

_UNUSED = "Masakari does not use it either"
_SERVER = "there is no eventlet server"


def _options(reason: str, *options: cfg.Opt) -> list[cfg.Opt]:
    for option in options:
        option.help = f"No effect: {reason}."
    return list(options)


_DEFAULT = [
    *_options(
        _UNUSED,
        cfg.StrOpt("bindir", default="<sys.prefix>/local/bin"),
        cfg.BoolOpt("fatal_exception_format_errors", default=False),
        cfg.IntOpt("report_interval", default=10),
        cfg.IntOpt("service_down_time", default=60),
        cfg.StrOpt("api_paste_config", default="api-paste.ini", deprecated_for_removal=True),
        cfg.IntOpt("client_socket_timeout", default=900, deprecated_for_removal=True),
        cfg.IntOpt("max_header_line", default=16384, deprecated_for_removal=True),
        cfg.IntOpt("tcp_keepidle", default=600, deprecated_for_removal=True),
        cfg.IntOpt("wsgi_default_pool_size", default=100, deprecated_for_removal=True),
        cfg.BoolOpt("wsgi_keep_alive", default=True, deprecated_for_removal=True),
        cfg.StrOpt(
            "wsgi_log_format",
            default='%(client_ip)s "%(request_line)s" status: %(status_code)s  len: %(body_length)s'
            " time: %(wall_seconds).7f",
            deprecated_for_removal=True,
        ),
        cfg.BoolOpt("wsgi_server_debug", default=False, deprecated_for_removal=True),
    ),
    *_options(
        _SERVER,
        cfg.StrOpt("backdoor_port", deprecated_for_removal=True),
        cfg.StrOpt("backdoor_socket", deprecated_for_removal=True),
    ),
    *_options(
        "there is one manager",
        cfg.StrOpt("engine_manager", default="masakari.engine.manager.MasakariManager"),
    ),
    *_options(
        "functions are not decorated",
        cfg.BoolOpt("monkey_patch", default=False),
        cfg.ListOpt("monkey_patch_modules", default=["masakari.api:masakari.cmd"]),
    ),
    *_options(
        "the database tells equal reports apart, without a delay",
        cfg.IntOpt("notification_delay_max", default=5, min=0),
    ),
]

_WSGI = [
    *_options("a worker answers 16 at once", cfg.IntOpt("default_pool_size", default=1000)),
    *_options(
        "set enable_proxy_headers_parsing in [oslo_middleware] instead",
        cfg.StrOpt("secure_proxy_ssl_header", deprecated_for_removal=True),
    ),
]

_RABBIT = [
    *_options(
        "a process keeps the few connections that it needs",
        cfg.IntOpt("conn_pool_min_size", default=2),
        cfg.IntOpt("conn_pool_ttl", default=1200),
        cfg.IntOpt("rpc_conn_pool_size", default=30, min=1),
    ),
    *_options(
        "a reply whose queue is gone is always noticed",
        cfg.BoolOpt("direct_mandatory_flag", default=True, deprecated_for_removal=True),
    ),
    *_options(
        "the system's OpenSSL decides",
        cfg.BoolOpt("ssl_enforce_fips_mode", default=False, deprecated_for_removal=True),
        cfg.StrOpt("ssl_version", default=""),
    ),
]

OPTIONS = {
    None: _DEFAULT,
    "wsgi": _WSGI,
    "osapi_v1": _options(
        _UNUSED,
        cfg.ListOpt("extensions_blacklist", default=[], deprecated_for_removal=True),
        cfg.ListOpt("extensions_whitelist", default=[], deprecated_for_removal=True),
    ),
    "oslo_messaging_rabbit": _RABBIT,
    "oslo_messaging_notifications": _options(
        "the topic is always versioned_notifications",
        cfg.ListOpt("topics", default=["notifications"]),
    ),
    "ssl": _options(
        _UNUSED,
        *(
            cfg.StrOpt(name, deprecated_for_removal=True)
            for name in ("ca_file", "cert_file", "ciphers", "key_file", "version")
        ),
    ),
}

LIBRARIES: dict[tuple[str | None, str], str] = {
    **dict.fromkeys(
        (
            ("database", "backend"),
            ("database", "db_inc_retry_interval"),
            ("database", "db_max_retries"),
            ("database", "db_max_retry_interval"),
            ("database", "db_retry_interval"),
            ("database", "use_db_reconnect"),
        ),
        "an engine repeats for ten minutes what the database did not answer",
    ),
    **dict.fromkeys(
        (("database", "asyncio_connection"), ("database", "asyncio_slave_connection")), _UNUSED
    ),
    (None, "fatal_deprecations"): "no deprecation is reported by an exception",
    (None, "publish_errors"): "errors are not sent as messages",
}
"""Registered options of libraries, by group and name."""

SECTIONS = {
    "oslo_messaging_kafka": "the message bus is RabbitMQ",
    "oslo_middleware_tracing": "requests are not traced",
    "oslo_versionedobjects": _UNUSED,
}
"""Whole sections, whose options are not registered."""

_NOT_SET = (cfg.Locations.opt_default, cfg.Locations.set_default)


def reasons() -> dict[tuple[str | None, str], str]:
    """Why an option does nothing, by group and name; without the sections."""
    ours = {
        (group, option.name): str(option.help).removeprefix("No effect: ").rstrip(".")
        for group, options in OPTIONS.items()
        for option in options
    }
    return ours | LIBRARIES


def given(conf: cfg.ConfigOpts) -> list[str]:
    """Those that are set, each as `[group] name (reason)`."""
    options = [
        f"[{group or 'DEFAULT'}] {name} ({reason})"
        for (group, name), reason in reasons().items()
        if _is_set(conf, name, group)
    ]
    found: Sequence[str] = conf.list_all_sections()
    return options + [f"[{name}] ({why})" for name, why in SECTIONS.items() if name in found]


def _is_set(conf: cfg.ConfigOpts, name: str, group: str | None) -> bool:
    location = conf.get_location(name, group)
    return location is not None and location.location not in _NOT_SET
