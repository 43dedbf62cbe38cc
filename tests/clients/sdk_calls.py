"""Makes calls of openstacksdk for the tests; runs where openstacksdk is installed.

Standard input has a JSON line `[method, arguments, keywords]` for each call, standard output gets
the answer: `{"result": ...}` or `{"error": [class, status, text]}`.
"""

import json
import sys
from typing import Any

import openstack
from openstack import exceptions
from openstack.resource import Resource


def main() -> None:
    """Serve until the input ends."""
    service = openstack.connect(api_timeout=60, **json.loads(sys.argv[1])).instance_ha
    for line in sys.stdin:
        method, arguments, keywords = json.loads(line)
        try:
            answer = {"result": _plain(getattr(service, method)(*arguments, **keywords))}
        except exceptions.SDKException as error:
            status = getattr(error, "status_code", None)
            answer = {"error": [type(error).__name__, status, str(error)]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _plain(found: Any) -> Any:
    if found is None:
        return None
    if isinstance(found, Resource):
        return found.to_dict(computed=False, original_names=False)
    return [_plain(item) for item in found]


if __name__ == "__main__":
    main()
