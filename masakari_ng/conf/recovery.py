"""Options of the recovery workflows. Spec: configuration §1, recovery §14."""

from oslo_config import cfg, types

_DEFAULT = [
    cfg.IntOpt(
        "wait_period_after_service_update",
        default=180,
        help="Seconds to wait after a failed host's service is disabled, so that Nova takes the"
        " host for down; also the most that a service may take to be disabled.",
    ),
    cfg.IntOpt(
        "wait_period_after_evacuation",
        default=90,
        help="Seconds that one instance gets to move; 0: no limit.",
    ),
    cfg.IntOpt("verify_interval", default=1, help="Seconds between two looks at Nova."),
    cfg.IntOpt(
        "wait_period_after_power_off",
        default=180,
        help="Seconds that one instance gets to stop; 0: no limit.",
    ),
    cfg.IntOpt(
        "wait_period_after_power_on",
        default=60,
        help="Seconds that one instance gets to become active; 0: no limit.",
    ),
    cfg.IntOpt(
        "host_failure_recovery_threads",
        default=3,
        min=1,
        help="Instances of one host that are evacuated at once.",
    ),
]

_HOST_FAILURE = [
    cfg.BoolOpt(
        "evacuate_all_instances",
        default=True,
        help="Evacuate every instance, not only those with the metadata key.",
    ),
    cfg.StrOpt(
        "ha_enabled_instance_metadata_key",
        default="HA_Enabled",
        help="Metadata key of the instances that come first.",
    ),
    cfg.BoolOpt(
        "ignore_instances_in_error_state",
        default=False,
        help="Leave instances in vm_state error where they are.",
    ),
    cfg.BoolOpt(
        "add_reserved_host_to_aggregate",
        default=False,
        help="Put a reserved host into the aggregates of the failed host.",
    ),
    cfg.StrOpt(
        "service_disable_reason",
        default="Masakari detected host failed.",
        help="Reason with which the compute service is disabled; empty: none.",
    ),
]

_INSTANCE_FAILURE = [
    cfg.BoolOpt(
        "process_all_instances",
        default=False,
        help="Recover every instance, not only those with the metadata key.",
    ),
    cfg.StrOpt(
        "ha_enabled_instance_metadata_key",
        default="HA_Enabled",
        help="Metadata key of the instances to be recovered.",
    ),
]

_PROCESS_FAILURE = [
    cfg.StrOpt(
        "service_disable_reason",
        default="Masakari detected process failed.",
        help="Reason with which the compute service is disabled.",
    ),
]

_PHASES = types.Dict(types.List(types.String(quotes=True), bounds=True), bounds=False)

_FLOWS = [
    cfg.Opt(
        "host_auto_failure_recovery_tasks",
        type=_PHASES,
        default="pre:['disable_compute_service_task'],"
        "main:['prepare_HA_enabled_instances_task'],"
        "post:['evacuate_instances_task']",
        help="Tasks of a host failure where Nova chooses the destination, in order.",
    ),
    cfg.Opt(
        "host_rh_failure_recovery_tasks",
        type=_PHASES,
        default="pre:['disable_compute_service_task'],"
        "main:['prepare_HA_enabled_instances_task', 'evacuate_instances_task'],"
        "post:[]",
        help="Tasks of a host failure with a reserved host, in order; main: once per host tried.",
    ),
    cfg.Opt(
        "instance_failure_recovery_tasks",
        type=_PHASES,
        default="pre:['stop_instance_task'],"
        "main:['start_instance_task'],"
        "post:['confirm_instance_active_task']",
        help="Tasks of an instance failure, in order.",
    ),
    cfg.Opt(
        "process_failure_recovery_tasks",
        type=_PHASES,
        default="pre:['disable_compute_node_task'],"
        "main:['confirm_compute_node_disabled_task'],"
        "post:[]",
        help="Tasks of a process failure, in order.",
    ),
]

OPTIONS = {
    None: _DEFAULT,
    "host_failure": _HOST_FAILURE,
    "instance_failure": _INSTANCE_FAILURE,
    "process_failure": _PROCESS_FAILURE,
    "taskflow_driver_recovery_flows": _FLOWS,
}
