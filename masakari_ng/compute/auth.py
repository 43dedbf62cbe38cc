"""The only place that logs in at Keystone. Spec: recovery §8.1."""

import re
import time
from typing import Any
from urllib.parse import urlsplit

from keystoneauth1 import exceptions, loading
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.plugin import BaseAuthPlugin
from keystoneauth1.session import Session, TCPKeepAliveAdapter
from oslo_config import cfg

from masakari_ng import errors, metrics

_ID = re.compile(r"/(?=[^/]*\d)[^/]+")
_UNANSWERED = "none"


class _SharedSession(Session):
    """Sends a refused request again also where another thread has dropped the token already."""

    def request(self, url: str, method: str, *given: Any, **options: Any) -> Any:
        """Send a request, be it to Nova or to Keystone, and measure it."""
        begin, answer = time.monotonic(), _UNANSWERED
        try:
            response = super().request(url, method, *given, **options)
            answer = str(response.status_code)
        except exceptions.HttpError as error:
            answer = str(error.http_status)
            raise
        else:
            return response
        finally:
            operation = _operation(url, method, options.get("json"))
            metrics.CLOUD.observe(time.monotonic() - begin, operation, answer)

    def invalidate(self, auth: BaseAuthPlugin | None = None) -> bool:
        super().invalidate(auth)  # False while that thread asks for the new one.
        return True


def _operation(url: str, method: str, body: Any) -> str:
    """What is asked for, without any id: Nova's paths are relative, Keystone's URLs are not."""
    path = urlsplit(url).path
    if path.endswith("/auth/tokens"):
        return "token"
    if url.startswith("http"):
        return "discovery"
    if path.endswith("/action"):
        return str(next(iter(body)))
    return f"{method} {_ID.sub('/ID', path)}"


def make_session(conf: cfg.ConfigOpts, threads: int) -> Session:
    """A session whose token is reused until it expires or is refused.

    A request that Nova answers with 401 is sent once more with a new token. Nothing else is
    repeated: a read timeout counts as a connection failure, so a repeated action could be carried
    out twice.

    Args:
        conf: options.
        threads: requests at once; so many connections are kept open.

    Raises:
        CloudError: no auth plugin is configured.
        keystoneauth1.exceptions.ClientException: the plugin is unknown or lacks an option.
    """
    session = _SharedSession(auth=_plugin(conf), verify=_verify(conf))
    for prefix in ("http://", "https://"):
        session.session.mount(prefix, TCPKeepAliveAdapter(pool_maxsize=threads))
    _limit(session, conf)
    return session


def anew(conf: cfg.ConfigOpts, session: Session) -> Session:
    """A session without a token that uses the connections of another one.

    Raises:
        CloudError: as `make_session`.
        keystoneauth1.exceptions.ClientException: as `make_session`.
    """
    fresh = _SharedSession(auth=_plugin(conf), session=session.session, verify=_verify(conf))
    _limit(fresh, conf)
    return fresh


def _plugin(conf: cfg.ConfigOpts) -> BaseIdentityPlugin:
    name = conf.keystone_authtoken.auth_type
    if not name:
        raise errors.CloudError("[keystone_authtoken] auth_type is not set: no request to Nova")
    loader: Any = loading.get_plugin_loader(name)
    known = {option.dest for option in loader.get_options()}
    values = {key: value for key, value in _credentials(conf).items() if key in known}
    plugin: BaseIdentityPlugin = loader.load_from_options(**values)
    return plugin


def _credentials(conf: cfg.ConfigOpts) -> dict[str, str | None]:
    """Values by the names that auth plugins have for them."""
    return {
        "auth_url": conf.os_privileged_user_auth_url,
        "username": conf.os_privileged_user_name,
        "password": conf.os_privileged_user_password,
        "project_name": conf.os_privileged_user_tenant,
        "user_domain_name": conf.os_user_domain_name,
        "project_domain_name": conf.os_project_domain_name,
        "system_scope": conf.os_system_scope,
    }


def _verify(conf: cfg.ConfigOpts) -> bool | str:
    if conf.nova_api_insecure:
        return False
    return conf.nova_ca_certificates_file or True


def _limit(session: Session, conf: cfg.ConfigOpts) -> None:
    own = (conf.masakari_ng.nova_connect_timeout, conf.masakari_ng.nova_read_timeout)
    # The constructor takes one number only; requests wants (connect, read).
    session.timeout = conf.timeout or own  # type: ignore[assignment]
