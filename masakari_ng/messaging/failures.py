"""The only table between our exceptions and upstream's, as they travel in replies.

Spec: rpc §7.5, §11
"""

import json
import traceback
from typing import NamedTuple

from masakari_ng import errors

_MASAKARI = "masakari.exception"
_BUILTIN = "builtins"
_RPC = "oslo_messaging.rpc.dispatcher"
_OBJECTS = "oslo_versionedobjects.exception"


class _Remote(NamedTuple):
    """A class of upstream, the HTTP status of its instances, attributes of ours they know, too."""

    module: str
    name: str
    code: int | None = None
    facts: tuple[str, ...] = ()


_REMOTE: dict[type[Exception], _Remote] = {
    errors.UnsupportedVersion: _Remote(_RPC, "UnsupportedVersion"),
    errors.UnknownMethod: _Remote(_RPC, "NoSuchMethod"),
    errors.ShortVersion: _Remote(_BUILTIN, "IndexError"),
    errors.WrongArguments: _Remote(_BUILTIN, "TypeError"),
    errors.NotAnObject: _Remote(_BUILTIN, "AttributeError"),
    errors.UnsupportedObject: _Remote(_OBJECTS, "UnsupportedObjectError", 500, ("objtype",)),
    errors.IncompatibleObject: _Remote(
        _OBJECTS, "IncompatibleObjectVersion", 500, ("objname", "objver", "supported")
    ),
    errors.BadMessage: _Remote(_BUILTIN, "ValueError"),
    errors.NotificationNotFound: _Remote(_MASAKARI, "NotificationNotFound", 404),
    errors.SegmentDisabled: _Remote(_MASAKARI, "FailoverSegmentDisabled", 500),
    errors.SegmentExists: _Remote(_MASAKARI, "FailoverSegmentExists", 409),
    errors.HostExists: _Remote(_MASAKARI, "HostExists", 409),
    errors.HostRecoveryFailure: _Remote(_MASAKARI, "HostRecoveryFailureException", 500),
    errors.ReservedHostsUnavailable: _Remote(_MASAKARI, "ReservedHostsUnavailable", 500),
    errors.LockAlreadyAcquired: _Remote(_MASAKARI, "LockAlreadyAcquired", 500),
    errors.InstanceRecoveryFailure: _Remote(_MASAKARI, "InstanceRecoveryFailureException", 500),
    errors.IgnoreInstanceRecovery: _Remote(_MASAKARI, "IgnoreInstanceRecoveryException", 500),
    errors.ProcessRecoveryFailure: _Remote(_MASAKARI, "ProcessRecoveryFailureException", 500),
    errors.CloudBadRequest: _Remote(_MASAKARI, "InvalidInput", 400),
    errors.CloudForbidden: _Remote(_MASAKARI, "Forbidden", 403),
    errors.CloudNotFound: _Remote(_MASAKARI, "NotFound", 404),
    errors.CloudConflict: _Remote(_MASAKARI, "Conflict", 409),
    errors.MasakariError: _Remote(_MASAKARI, "MasakariException", 500),
}
"""The class or its nearest ancestor decides; what is not here keeps its own name."""


def upstream_name(error: Exception) -> str:
    """The name of the class that upstream would have raised."""
    return _remote(error).name


def describe(error: Exception) -> str:
    """The failure of a reply, as JSON."""
    remote = _remote(error)
    prefix = "" if remote.module == _BUILTIN else f"{remote.module}."
    trace = [
        "Traceback (most recent call last):\n",
        *traceback.format_tb(error.__traceback__),
        f"{prefix}{remote.name}: {error}\n",
    ]
    keywords = {name: getattr(error, name) for name in remote.facts}
    return json.dumps(
        {
            "class": remote.name,
            "module": remote.module,
            "message": str(error),
            "tb": trace,
            "args": list(error.args),
            "kwargs": keywords | ({"code": remote.code} if remote.code else {}),
        },
        default=str,
    )


def rebuild(failure: object) -> errors.MasakariError:
    """Ours for what a reply says; all that a client cannot tell apart is a `RemoteFailure`."""
    try:
        told = json.loads(str(failure))
        name, message = (told["module"], told["class"]), told["message"]
        keywords = told["kwargs"]
        if name == (_MASAKARI, "NotificationNotFound"):
            return errors.NotificationNotFound(keywords["id"])
    except (ValueError, TypeError, KeyError):
        return errors.RemoteFailure(f"The engine has failed: {failure}")
    return errors.RemoteFailure(f"The engine has failed: {'.'.join(name)}: {message}")


def _remote(error: Exception) -> _Remote:
    for kind in type(error).__mro__:
        if kind in _REMOTE:
            return _REMOTE[kind]
    return _Remote(type(error).__module__, type(error).__name__)
