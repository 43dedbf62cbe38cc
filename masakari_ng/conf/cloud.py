"""Options that say how to reach Nova and Keystone. Spec: configuration §1, recovery §8."""

from oslo_config import cfg

_DEFAULT = [
    cfg.StrOpt(
        "nova_catalog_admin_info",
        default="compute:nova:publicURL",
        help="Type, name and interface of Nova in the catalog, separated by colons.",
    ),
    cfg.StrOpt("os_region_name", help="Region of Nova; unset: the first in the catalog."),
    cfg.StrOpt(
        "nova_ca_certificates_file",
        help="CA file for Nova and Keystone; unset: that of the Python package certifi.",
    ),
    cfg.BoolOpt("nova_api_insecure", default=False, help="Do not verify the certificates of Nova."),
    cfg.StrOpt("os_privileged_user_name", help="User that evacuates, for Nova an administrator."),
    cfg.StrOpt("os_privileged_user_password", secret=True, help="Password of that user."),
    cfg.StrOpt("os_privileged_user_tenant", help="Project of that user."),
    cfg.URIOpt("os_privileged_user_auth_url", help="URL of Keystone, with or without /v3."),
    cfg.StrOpt("os_user_domain_name", default="default", help="Name of the user's domain."),
    cfg.StrOpt("os_project_domain_name", default="default", help="Name of the project's domain."),
    cfg.StrOpt("os_system_scope", help="Scope of the token if not a project: all."),
    cfg.IntOpt(
        "timeout",
        help="Seconds for each request to Nova or Keystone, connecting included; unset: the two"
        " timeouts of [masakari_ng].",
    ),
]

OPTIONS = {None: _DEFAULT}
