"""Protects that an engine with unusable options does not start, and says why."""

import pytest

from masakari_ng import errors
from masakari_ng.cmd.engine_parts import build_engine


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("DEFAULT.notification_driver", "", "Notification driver option required"),
        ("DEFAULT.notification_driver", "nothing", "No 'masakari.driver' driver found, looking"),
        ("taskflow.connection", None, "connection should be configured to use this driver"),
        ("DEFAULT.nova_catalog_admin_info", "compute:nova", "must be <type>:<name>:<interface>"),
        ("masakari_ng.claim_timeout", 44, "must be at least three times claim_heartbeat"),
    ],
)
def test_unusable_option(conf, option, value, text):
    group, _, name = option.partition(".")
    conf.set_override(name, value, None if group == "DEFAULT" else group)

    with pytest.raises(errors.ConfigurationError, match=text):
        build_engine(conf)


def test_building_contacts_nobody(conf):
    conf.set_override("transport_url", "rabbit://127.0.0.1:1/")
    conf.set_override("connection", "mysql+pymysql://127.0.0.1:1/none", "database")
    conf.set_override("connection", "mysql+pymysql://127.0.0.1:1/none", "taskflow")

    build_engine(conf)


@pytest.mark.parametrize(
    ("name", "trouble"),
    [("somebodys_driver", None), ("broken_driver", "Failed to load notification driver 'broken_")],
)
def test_driver_of_another_package(conf, install, name, trouble):
    install(
        "[masakari.driver]\nsomebodys_driver = types:SimpleNamespace\nbroken_driver = nonesuch:It\n"
    )
    conf.set_override("notification_driver", name)

    if trouble:
        with pytest.raises(errors.ConfigurationError, match=trouble):
            build_engine(conf)
    else:
        build_engine(conf)
