"""Protects which extensions a caller may discover."""

from pathlib import Path


def test_what_may_not_be_discovered_does_not_exist(conf, make_client, tmp_path: Path):
    make_client()  # registers the option
    policy = tmp_path / "policy.yaml"
    policy.write_text('"os_masakari_api:segments:discoverable": "!"')
    conf.set_override("policy_file", str(policy), "oslo_policy")
    client = make_client()

    listed = [found["alias"] for found in client("GET", "/v1/extensions").json["extensions"]]

    assert listed == ["extensions", "notifications", "os-hosts", "versions", "vmoves"]
    assert client("GET", "/v1/extensions/segments").status_int == 404
    assert client("GET", "/v1/extensions/vmoves").json["extension"]["name"] == "vmoves"
