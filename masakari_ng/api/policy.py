"""Who may do what: the rules, their defaults, and the check. Spec: policy."""

import time
from collections.abc import Callable, MutableMapping
from typing import Any

import falcon
from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from masakari_ng import errors
from masakari_ng.domain import RequestContext

Authorize = Callable[[falcon.Request, str], None]
"""Raises `Forbidden` unless the caller may do what the rule is about."""

_IS_ADMIN = "context_is_admin"

_LOOK = 1.0
"""Seconds after which a changed file is noticed at the latest."""

_BASE = [
    oslo_policy.RuleDefault(
        _IS_ADMIN,
        "role:admin",
        "Who counts as administrator. Overriding it changes every rule that says rule:admin_api.",
    ),
    oslo_policy.RuleDefault(
        "admin_or_owner",
        "is_admin:True or project_id:%(project_id)s",
        "Anyone who has a project; no rule uses it.",
    ),
    oslo_policy.RuleDefault(
        "admin_api", "is_admin:True", "Callers for whom context_is_admin holds."
    ),
]

_OPERATIONS = {
    "os_masakari_api:extensions:index": ("GET", "/extensions"),
    "os_masakari_api:extensions:detail": ("GET", "/extensions/{extensions_id}"),
    "os_masakari_api:os-hosts:index": ("GET", "/segments/{segment_id}/hosts"),
    "os_masakari_api:os-hosts:detail": ("GET", "/segments/{segment_id}/hosts/{host_id}"),
    "os_masakari_api:os-hosts:create": ("POST", "/segments/{segment_id}/hosts"),
    "os_masakari_api:os-hosts:update": ("PUT", "/segments/{segment_id}/hosts/{host_id}"),
    "os_masakari_api:os-hosts:delete": ("DELETE", "/segments/{segment_id}/hosts/{host_id}"),
    "os_masakari_api:notifications:index": ("GET", "/notifications"),
    "os_masakari_api:notifications:detail": ("GET", "/notifications/{notification_id}"),
    "os_masakari_api:notifications:create": ("POST", "/notifications"),
    "os_masakari_api:segments:index": ("GET", "/segments"),
    "os_masakari_api:segments:detail": ("GET", "/segments/{segment_id}"),
    "os_masakari_api:segments:create": ("POST", "/segments"),
    "os_masakari_api:segments:update": ("PUT", "/segments/{segment_id}"),
    "os_masakari_api:segments:delete": ("DELETE", "/segments/{segment_id}"),
    "os_masakari_api:versions:index": ("GET", "/"),
    "os_masakari_api:vmoves:index": ("GET", "/notifications/{notification_id}/vmoves"),
    "os_masakari_api:vmoves:detail": ("GET", "/notifications/{notification_id}/vmoves/{vmove_id}"),
}

_ALWAYS = ("os_masakari_api:versions:index", "os_masakari_api:versions:discoverable")


def list_rules() -> list[oslo_policy.RuleDefault]:
    """All rules with their defaults, as the tools of oslo.policy want them."""
    operations = [
        oslo_policy.DocumentedRuleDefault(
            name, _default(name), _description(name), [{"method": method, "path": path}]
        )
        for name, (method, path) in _OPERATIONS.items()
    ]
    extensions = dict.fromkeys(name.rpartition(":")[0] for name in _OPERATIONS)
    discoverable = [
        oslo_policy.RuleDefault(
            name, _default(name), "Who sees this extension in GET /extensions. It protects nothing."
        )
        for name in (f"{extension}:discoverable" for extension in extensions)
    ]
    return _BASE + operations + discoverable


def _description(name: str) -> str:
    _, noun, action = name.split(":")
    if name in _ALWAYS:
        return "The list of API versions, which needs no token. This rule is not asked."
    noun = noun.removeprefix("os-")
    if action == "index":
        return f"List {noun}."
    verb = "show" if action == "detail" else action
    return f"{verb.capitalize()} {'an' if noun[0] == 'e' else 'a'} {noun.removesuffix('s')}."


def _default(name: str) -> str:
    return "@" if name in _ALWAYS else "rule:admin_api"


@oslo_policy.register("is_admin")
class IsAdminCheck(oslo_policy.Check):
    """`is_admin:VALUE` compares the flag of the context, `true` in any case being true."""

    def __call__(
        self,
        target: Any,
        creds: MutableMapping[str, Any],
        enforcer: Any,
        current_rule: str | None = None,
    ) -> bool:
        return bool(creds["is_admin"]) == (self.match.lower() == "true")


class _Enforcer(oslo_policy.Enforcer):
    """Looks at its files each second, not at each of several questions of a request."""

    _next_look = 0.0

    def load_rules(self, force_reload: bool = False) -> None:
        moment = time.monotonic()
        if force_reload or moment >= self._next_look:
            super().load_rules(force_reload)
            self._next_look = moment + _LOOK


class Policy:
    """The rules of one application; an instance is its `Authorize`.

    Attributes:
        enforcer: of oslo.policy.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.enforcer = _Enforcer(conf)
        self.enforcer.register_defaults(list_rules())

    def __call__(self, req: falcon.Request, rule: str) -> None:
        """Let pass or refuse.

        Args:
            req: the request, with its context.
            rule: full name of the rule.

        Raises:
            Forbidden: the rule does not hold for the caller.
        """
        if not self.allows(req, rule):
            raise errors.Forbidden(f"Policy doesn't allow {rule} to be performed.")

    def allows(self, req: falcon.Request, rule: str) -> bool:
        """Whether the rule holds for the caller."""
        return self._holds(rule, req.context.caller)

    def is_admin(self, caller: RequestContext) -> bool:
        """Whether the caller counts as administrator by its own credentials."""
        return self._holds(_IS_ADMIN, caller)

    def _holds(self, rule: str, caller: RequestContext) -> bool:
        target = {"project_id": caller.project_id, "user_id": caller.user_id}
        return bool(self.enforcer.authorize(rule, target, _credentials(caller)))


def _credentials(caller: RequestContext) -> dict[str, Any]:
    return {
        "user_id": caller.user_id,
        "user_domain_id": caller.user_domain_id,
        "project_id": caller.project_id,
        "project_domain_id": caller.project_domain_id,
        "domain_id": caller.domain_id,
        "system_scope": caller.system_scope,
        "roles": list(caller.roles),
        "service_roles": list(caller.service_roles),
        "is_admin": caller.is_admin,
        "is_admin_project": caller.is_admin_project,
    }
