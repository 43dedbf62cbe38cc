"""`masakari-ng-status`: is everything ready for this release? Spec: cli, masakari-status."""

import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg

from masakari_ng import conf as options
from masakari_ng.api.policy import Policy

_PROGRAM = "masakari-ng-status"
_TITLE = "Upgrade Check Results"
_CHECK = "Policy File JSON to YAML Migration"
_SUCCESS, _FAILURE = 0, 2
_NAMES = {_SUCCESS: "Success", _FAILURE: "Failure"}
_DETAILS_WIDTH = 60
_JSON_POLICY = (
    "Your policy file is JSON-formatted which is deprecated. You need to switch to "
    "YAML-formatted file. Use the ``oslopolicy-convert-json-to-yaml`` tool to convert the "
    "existing JSON-formatted files to YAML in a backwards-compatible manner: "
    "https://docs.openstack.org/oslo.policy/latest/cli/oslopolicy-convert-json-to-yaml.html."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `upgrade check`.

    Args:
        arguments: command line without the program; None takes the process' own.

    Returns:
        The exit code: 0 ready, 1 no configuration, 2 the check failed or was not understood.
    """
    command = cfg.SubCommandOpt("command", handler=_add_commands)
    try:
        conf = options.load(arguments, program=_PROGRAM, subcommands=[command])
    except cfg.Error as error:
        print(error, file=sys.stderr)
        return 1
    details = _policy_problem(conf)
    result = _SUCCESS if details is None else _FAILURE
    if conf.command.json:
        check = {"check": _CHECK, "result": result, "details": details}
        print(json.dumps({"name": _TITLE, "checks": [check]}))
    else:
        print(_table(result, details))
    return result


def _add_commands(commands: Any) -> None:
    upgrade = commands.add_parser("upgrade")
    upgrade.add_argument("--json", action="store_true", help="Output the results as JSON")
    upgrade.add_argument("check", choices=["check"], metavar="check")


def _policy_problem(conf: cfg.ConfigOpts) -> str | None:
    """What is wrong with the file that the options name; a missing one is no problem."""
    Policy(conf)  # makes oslo.policy's options known
    path = conf.find_file(conf.oslo_policy.policy_file)
    if path is None:
        return None
    try:
        json.loads(Path(path).read_text())
    except ValueError:
        return None
    return _JSON_POLICY


def _table(result: int, details: str | None) -> str:
    wrapped = textwrap.wrap(str(details), _DETAILS_WIDTH, subsequent_indent="  ")
    lines = [f"Check: {_CHECK}", f"Result: {_NAMES[result]}", f"Details: {wrapped[0]}"]
    lines += wrapped[1:]
    width = max(len(line) for line in lines)
    rule = f"+{'-' * (width + 2)}+"
    body = "\n".join(f"| {line:{width}} |" for line in lines)
    return f"{rule}\n| {_TITLE:{width}} |\n{rule}\n{body}\n{rule}"


if __name__ == "__main__":
    sys.exit(main())
