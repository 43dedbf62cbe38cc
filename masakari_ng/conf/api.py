"""Options of the API service. Spec: configuration §1."""

from oslo_config import cfg

_DEFAULT = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=["keystone", "noauth2"],
        help="Who checks the caller: Keystone, or nobody. noauth2 is for tests: whoever reaches the"
        " port is administrator.",
    ),
    cfg.BoolOpt(
        "use_forwarded_for",
        default=False,
        deprecated_for_removal=True,
        deprecated_reason="Set enable_proxy_headers_parsing in [oslo_middleware] instead.",
        help="Take the caller's address, which only messages carry, from X-Forwarded-For.",
    ),
    cfg.IntOpt(
        "osapi_max_limit",
        default=1000,
        help="Entries in one answer, at most and where the request gives no limit.",
    ),
    cfg.StrOpt(
        "osapi_masakari_link_prefix",
        help="How links in version documents begin, as https://cloud.example.com/instance-ha;"
        " unset: as the URL of the request.",
    ),
    cfg.HostAddressOpt(
        "masakari_api_listen",
        default="0.0.0.0",  # noqa: S104 - upstream's default
        help="Address to listen on; not under a WSGI server.",
    ),
    cfg.IntOpt(
        "masakari_api_listen_port",
        default=15868,
        min=1,
        max=65535,
        help="Port to listen on; not under a WSGI server.",
    ),
    cfg.IntOpt("masakari_api_workers", help="Number of worker processes; unset: one for each CPU."),
    cfg.BoolOpt("use_ssl", default=False, help="Speak TLS with the files of [wsgi]."),
    cfg.IntOpt(
        "duplicate_notification_detection_interval",
        default=180,
        min=0,
        help="Seconds within which an equal report counts as the same failure and is answered 409;"
        " 0: never.",
    ),
]

_WSGI = [
    cfg.StrOpt(
        "api_paste_config",
        default="api-paste.ini",
        help="Not a pipeline here: it is looked through for filters of your own, which a warning"
        " at the start names. A name without a folder is looked for beside masakari.conf.",
    ),
    cfg.StrOpt("ssl_ca_file", help="CA file; with it clients need a certificate (use_ssl)."),
    cfg.StrOpt("ssl_cert_file", help="Certificate of the service (use_ssl)."),
    cfg.StrOpt("ssl_key_file", help="Key of the certificate (use_ssl)."),
    cfg.BoolOpt("keep_alive", default=True, help="Keep connections open between requests."),
    cfg.IntOpt(
        "client_socket_timeout",
        default=900,
        help="Seconds until a connection on which no request comes is closed; 0: never.",
    ),
    cfg.IntOpt(
        "max_header_line",
        default=16384,
        help="Bytes of a header line that are taken, as for large tokens; longer ones may be, too.",
    ),
    cfg.IntOpt("tcp_keepidle", default=600, help="Seconds until an idle connection is probed."),
    cfg.StrOpt(
        "wsgi_log_format",
        default='%(client_ip)s "%(request_line)s" status: %(status_code)s len: %(body_length)s'
        " time: %(wall_seconds).7f",
        help="Log line of a request; also has client_port and date_time.",
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

OPTIONS = {None: _DEFAULT, "wsgi": _WSGI, "osapi_v1": _OSAPI_V1, "coordination": _COORDINATION}
