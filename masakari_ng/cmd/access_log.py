"""One line in the log for each request, in the form of `[wsgi] wsgi_log_format`."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from masakari_ng import errors, logs

log = logging.getLogger(__name__)

Wsgi = Callable[..., Iterable[bytes]]

_AS_SENT = "/%!$&'()*+,;=:@~"


class AccessLog:
    """Around the application.

    Args:
        app: answers, and has said how long its answer is when it returns.
        form: with the fields of eventlet's server.

    Raises:
        ConfigurationError: the form has a field that there is not.
    """

    def __init__(self, app: Wsgi, form: str) -> None:
        self._app = app
        self._form = form
        try:
            form % _fields({}, "200 OK", [], 0.0)
        except (KeyError, TypeError, ValueError) as error:
            raise errors.ConfigurationError(f"[wsgi] wsgi_log_format: {error!r}") from error

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        begin, answer = time.perf_counter(), _Answer(start_response)
        asked = dict(environ)  # what is inside changes the path
        try:
            return self._app(environ, answer)
        finally:
            seconds = time.perf_counter() - begin
            with logs.about(request_id=environ.get("openstack.request_id")):
                log.info(self._form, _fields(asked, answer.status, answer.headers, seconds))


class _Answer:
    """What the application has begun to answer; 500 as long as it has not."""

    def __init__(self, start_response: Callable[..., Any]) -> None:
        self._start_response = start_response
        self.status = "500"
        self.headers: list[tuple[str, str]] = []

    def __call__(self, status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
        self.status, self.headers = status, headers
        return self._start_response(status, headers, *error)


def _fields(
    environ: dict[str, Any], status: str, headers: list[tuple[str, str]], seconds: float
) -> dict[str, Any]:
    # Quoted, so that nobody can forge a line.
    target = quote(environ.get("PATH_INFO", "").encode("latin-1"), safe=_AS_SENT)
    if environ.get("QUERY_STRING"):
        target += f"?{environ['QUERY_STRING']}"
    method, protocol = environ.get("REQUEST_METHOD", ""), environ.get("SERVER_PROTOCOL", "")
    through = environ.get("HTTP_X_FORWARDED_FOR", "").replace(" ", "")
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    return {
        "client_ip": ",".join(filter(None, (through, environ.get("REMOTE_ADDR", "")))),
        "client_port": environ.get("REMOTE_PORT", ""),
        "date_time": time.strftime("%d/%b/%Y %H:%M:%S"),
        "request_line": f"{method} {target} {protocol}",
        "status_code": status.partition(" ")[0],
        "body_length": int(lengths[0]) if lengths else 0,
        "wall_seconds": seconds,
    }
