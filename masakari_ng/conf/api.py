"""Options of the API service. Spec: configuration §1."""

from oslo_config import cfg

_DEFAULT = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=["keystone", "noauth2"],
        help="Who checks the caller: Keystone, or nobody (noauth2: everybody is administrator).",
    ),
    cfg.BoolOpt(
        "use_forwarded_for",
        default=False,
        deprecated_for_removal=True,
        deprecated_reason="Set enable_proxy_headers_parsing in [oslo_middleware] instead.",
        help="Take the caller's address from X-Forwarded-For.",
    ),
    cfg.IntOpt("osapi_max_limit", default=1000, help="Greatest and default length of a list."),
    cfg.StrOpt(
        "osapi_masakari_link_prefix",
        help="Replaces scheme, host and the beginning of the path in links.",
    ),
    cfg.IntOpt(
        "notification_delay_max",
        default=5,
        min=0,
        help="Accepted and not used: equal reports are told apart in the database.",
    ),
    cfg.HostAddressOpt("masakari_api_listen", default="0.0.0.0", help="Address to listen on."),  # noqa: S104 - upstream's default
    cfg.PortOpt("masakari_api_listen_port", default=15868, min=1, help="Port to listen on."),
    cfg.IntOpt("masakari_api_workers", help="Number of worker processes; unset: one for each CPU."),
    cfg.BoolOpt("use_ssl", default=False, help="Speak TLS with the files of [wsgi]."),
    cfg.IntOpt(
        "duplicate_notification_detection_interval",
        default=180,
        min=0,
        help="Seconds within which an equal report counts as the same failure.",
    ),
]

_WSGI = [
    cfg.StrOpt(
        "api_paste_config",
        default="api-paste.ini",
        help="No pipeline here; it is looked through for filters that there are not.",
    ),
    cfg.StrOpt(
        "wsgi_log_format",
        default='%(client_ip)s "%(request_line)s" status: %(status_code)s len: %(body_length)s'
        " time: %(wall_seconds).7f",
        help="Form of the access log line.",
    ),
    cfg.StrOpt(
        "secure_proxy_ssl_header",
        deprecated_for_removal=True,
        help="Header in which a proxy says which scheme the client used.",
    ),
    cfg.StrOpt("ssl_ca_file", help="CA file; makes client certificates compulsory."),
    cfg.StrOpt("ssl_cert_file", help="Certificate of the service."),
    cfg.StrOpt("ssl_key_file", help="Key of the certificate."),
    cfg.IntOpt("tcp_keepidle", default=600, help="Seconds until an idle connection is probed."),
    cfg.IntOpt("default_pool_size", default=1000, help="Requests at once in one worker."),
    cfg.IntOpt("max_header_line", default=16384, help="Longest header line in bytes."),
    cfg.BoolOpt("keep_alive", default=True, help="Keep connections open between requests."),
    cfg.IntOpt(
        "client_socket_timeout",
        default=900,
        help="Seconds until a silent connection is closed; 0: never.",
    ),
]

_OSAPI_V1 = [
    cfg.StrOpt(
        "project_id_regex",
        deprecated_for_removal=True,
        help=r"Pattern of the optional project id in URLs; unset: [0-9a-f\-]+.",
    ),
]

_COORDINATION = [
    cfg.StrOpt(
        "backend_url",
        secret=True,
        help="tooz URL of a lock service around the creation of host notifications. They are"
        " accepted without it where it does not answer.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Make the options of this module known to `conf`."""
    conf.register_opts(_DEFAULT)
    conf.register_opts(_WSGI, group="wsgi")
    conf.register_opts(_OSAPI_V1, group="osapi_v1")
    conf.register_opts(_COORDINATION, group="coordination")
