"""The scenes: the eight end-to-end scenarios of Masakari's analysis, each under its name there."""

from collections.abc import Mapping

from masakari_ng.demo.script import FAILED, RESERVE, SEGMENT, SUCCEEDED, Actor, Report, Scene

_HA = {"metadata": {"HA_Enabled": "True"}}
_CRASHED = {"event": "LIFECYCLE", "vir_domain_event": "STOPPED_FAILED"}
_IO_ERROR = {"event": "IO_ERROR", "vir_domain_event": "IO_ERROR_REPORT"}
_RETRIES = {"periodic_enable": True, "process_unfinished_notifications_interval": 4}

_DIED = Report(f"{FAILED} has died, and a monitor has reported it to the API.")
_REPAIR = (
    f"Repair {FAILED}. It stays on maintenance and its compute service stays disabled, so that "
    "nothing happens to it behind your back.",
    f"openstack compute service set --enable {FAILED} nova-compute",
    f"openstack segment host update --on_maintenance False {SEGMENT} {FAILED}",
)
_RESERVE_AGAIN = f"openstack segment host update --reserved True {SEGMENT} {FAILED}"

_PAIR = (
    Actor("web-1", FAILED, "active", _HA, SUCCEEDED),
    Actor("batch-1", FAILED, "stopped", {"vm_state": "stopped"}, SUCCEEDED),
    Actor("web-2", "node-2", "active", _HA),
)
_LEFT = (Actor("web-1", FAILED, "active", _HA), Actor("web-2", "node-2", "active", _HA))

_AUTO = Scene(
    title="A host of a segment dies, and its instances come back on the other hosts.",
    meaning="finished: every instance of the host has been moved; Nova chose where to.",
    cast=(
        Actor("web-1", FAILED, "active", _HA, SUCCEEDED),
        Actor("web-2", FAILED, "active", _HA | {"locked": True}, SUCCEEDED),
        Actor("web-3", FAILED, "active", {}, SUCCEEDED),
        Actor("batch-1", FAILED, "stopped", {"vm_state": "stopped"}, SUCCEEDED),
        Actor("db-1", FAILED, "error", _HA | {"vm_state": "error"}, SUCCEEDED),
        Actor("db-2", FAILED, "active", {"vm_state": "resized"}, SUCCEEDED),
        Actor("cache-1", FAILED, "stopped", {"vm_state": "paused"}, SUCCEEDED),
        Actor("mail-1", FAILED, "active", {"task_state": "pausing"}, SUCCEEDED),
        Actor("web-4", "node-2", "active", _HA),
        Actor("db-3", "node-2", "active"),
        Actor("web-5", "node-3", "active"),
        Actor("batch-2", "node-4", "stopped", {"vm_state": "stopped"}),
    ),
    reports=(_DIED,),
    remarks=(
        "Paused and stopped instances come back stopped, resized ones active, and those in error "
        "in error: what their users find is safe, not running by accident.",
    ),
    steps=_REPAIR,
)

_RESERVED = Scene(
    title="A host dies, and a reserved host takes all its instances.",
    meaning=f"finished: {RESERVE} was enabled, is reserved no longer, and took every instance.",
    cast=_PAIR,
    reports=(_DIED,),
    method="reserved_host",
    reserve=True,
    reserve_used=True,
    steps=(*_REPAIR, f"Make it the reserve: {_RESERVE_AGAIN}"),
)

_NONE_RESERVED = Scene(
    title="A host dies in a segment whose method wants a reserved host, but there is none.",
    meaning="error at once, and failed after the one retry: no instance was touched. Nobody will "
    "try again.",
    cast=_LEFT,
    reports=(Report(_DIED.says, ends=("error", "failed")),),
    method="reserved_host",
    options=_RETRIES,
    steps=(
        f"Evacuate by hand: openstack --os-compute-api-version 2.29 server evacuate web-1 (for "
        f"each instance of {FAILED}).",
        "Give the segment a reserved host, or the method rh_priority, which would have gone on "
        "without one.",
        *_REPAIR[1:],
    ),
)

_FALLBACK = Scene(
    title="Nova forgets an evacuation, and auto_priority falls back on a reserved host.",
    meaning="error, then finished: the first attempt ran out of time, the one on the reserved host "
    "succeeded. Masakari counts the failed vmove all the same, hence the error; the retry finds "
    "nothing left to do.",
    cast=(
        Actor("web-1", FAILED, "active", _HA, f"failed, {SUCCEEDED}"),
        *_PAIR[1:],
    ),
    reports=(Report(_DIED.says, ends=("error", "finished")),),
    method="auto_priority",
    reserve=True,
    reserve_used=True,
    options=_RETRIES,
    forgotten="web-1",
    remarks=(
        "A succeeded vmove beside a failed one of the same instance: the recovery worked.",
        "With corrections = vmove_accounting the newest vmove decides, and there is no error.",
    ),
    steps=(*_REPAIR, f"Make it the reserve: {_RESERVE_AGAIN}"),
)

_INSTANCE = Scene(
    title="Instances crash; those that are to be kept up are started again where they are.",
    meaning="finished does not tell whether an instance was restarted or deliberately left alone; "
    "ignored means that its state forbids a restart. The progress messages tell.",
    cast=(
        Actor("web-1", FAILED, "active", _HA),
        Actor("web-2", FAILED, "active"),
        Actor("web-3", FAILED, "paused", _HA | {"vm_state": "paused"}),
        Actor("batch-1", FAILED, "active", _HA | {"vm_state": "stopped"}),
    ),
    reports=(
        Report("web-1, HA_Enabled, has crashed.", "VM", _CRASHED, "web-1"),
        Report("web-2, not HA_Enabled, has crashed.", "VM", _CRASHED, "web-2"),
        Report("web-3, paused, has crashed.", "VM", _CRASHED, "web-3", ends=("ignored",)),
        Report("batch-1, stopped by its user, has an I/O error.", "VM", _IO_ERROR, "batch-1"),
    ),
    host_dies=False,
    maintenance=False,
    remarks=(
        "An I/O error starts an instance that its user had stopped. With corrections = "
        "user_stopped_instances it stays stopped.",
    ),
)

_PROCESS = Scene(
    title="nova-compute dies on a host that goes on; then the host dies as well.",
    meaning="finished, then 409: the host got no new instances, but it is on maintenance since, so "
    "that its real failure is refused and its instance stays where it is.",
    cast=_LEFT,
    reports=(
        Report(
            f"nova-compute of {FAILED} has stopped and does not come back.",
            "PROCESS",
            {"event": "STOPPED", "process_name": "nova-compute"},
        ),
        Report(f"{FAILED} has died now, and a monitor reports it to the API.", ends=()),
    ),
    steps=(
        f"Take a host out of maintenance as soon as its processes run: {_REPAIR[2]}",
        f"openstack compute service set --enable {FAILED} nova-compute",
        "Evacuate by hand what is left on it. masakari-monitors does not repeat a refused report.",
    ),
)

_LOST = Scene(
    title="The broker is away when a host dies, so that no engine hears of it.",
    meaning="new for a while, then finished: the API had recorded the report before it answered, "
    "and the periodic task of an engine found it.",
    cast=_PAIR,
    reports=(_DIED,),
    options=_RETRIES | {"retry_notification_new_status_interval": 5},
    broker_away=True,
    remarks=(
        "As configured by default that takes 60 seconds, and up to 120 more until the task runs.",
    ),
    steps=_REPAIR,
)

_EXPIRED = Scene(
    title="A report arrives from a monitor whose clock is 25 hours late.",
    meaning="failed without being tried: by its generated_time the report is older than a day, and "
    "so it expires.",
    cast=_LEFT,
    reports=(Report(_DIED.says, hours_ago=25, ends=("failed",)),),
    options={"periodic_enable": True, "check_expired_notifications_interval": 3},
    maintenance=False,
    broker_away=True,
    remarks=(
        "The broker is away here as well: an engine that hears of such a report at once does "
        "recover from it.",
    ),
    steps=(
        f"Set the clock of the monitor of {FAILED}, and report the failure again.",
        "With corrections = expiry_by_receipt the age counts from the arrival.",
    ),
)

SCENES: Mapping[str, Scene] = {
    "host-failure-auto": _AUTO,
    "host-failure-reserved-host": _RESERVED,
    "host-failure-no-reserved-host-then-periodic": _NONE_RESERVED,
    "host-failure-auto-priority-fallback": _FALLBACK,
    "instance-failure": _INSTANCE,
    "process-failure": _PROCESS,
    "periodic-retry-lost-new-notification": _LOST,
    "periodic-expired-notification": _EXPIRED,
}
