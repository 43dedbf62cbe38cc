"""Protects the simulated cloud as a program of its own, on which an installation is tried."""

import json
import signal
import subprocess
import sys
import urllib.request


def test_serves_an_instance_that_can_be_evacuated_until_it_is_ended():
    command = [sys.executable, "-m", "masakari_ng.demo", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            option, url = process.stdout.readline().split(" = ")
            with urllib.request.urlopen(url.strip(), timeout=10) as answer:
                version = json.load(answer)["version"]
        finally:
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=10)

    assert option == "os_privileged_user_auth_url"
    assert version["id"].startswith("v3")
    assert said == "web-1 is on node-1\nweb-2 is on node-1\n"
    assert process.returncode == 0
