"""Protects the links of the version documents and the ways to choose the application."""

import pytest

FORWARDED = {
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "proxy.example.org",
    "X-Forwarded-Prefix": "/pre",
}


@pytest.mark.parametrize(
    ("prefix", "parsing", "expected"),
    [
        (None, False, "http://Ha.example.org"),
        (None, True, "https://proxy.example.org/pre"),
        ("https://x.example.org/ha/", False, "https://x.example.org/ha"),
        ("https://x.example.org/ha", True, "https://x.example.org/ha/pre"),
    ],
)
def test_links_begin_as_the_client_sees_the_service(
    conf, make_client, prefix: str | None, parsing: bool, expected: str
):
    make_client()  # registers the option
    conf.set_override("osapi_masakari_link_prefix", prefix)
    conf.set_override("enable_proxy_headers_parsing", parsing, "oslo_middleware")
    client = make_client()
    headers = {**FORWARDED, "Host": "Ha.example.org:80"}

    listed = client("GET", "/", headers=headers).json["versions"][0]
    shown = client("GET", "/v1/", headers=headers).json["version"]
    choice = client("GET", "/v2/a%20b/", headers=headers).json["choices"][0]

    assert listed["links"][0]["href"] == f"{expected}/v1/"
    assert shown["links"][0]["href"] == f"{expected}/v1/"
    assert choice["links"][0]["href"] == f"{expected}/v1/v2/a%20b"


@pytest.mark.parametrize(
    "headers",
    [
        {"Accept": "application/json;version=1"},
        {"Accept": "text/html, application/json; version=1"},
        {"Content-Type": "application/json;version=1"},
    ],
)
def test_the_version_may_be_a_parameter_of_a_media_type(make_client, headers: dict[str, str]):
    client = make_client()

    assert client("GET", "/segments", headers=headers).json == {"segments": []}
    assert client("GET", "/segments", headers={"Accept": "application/json"}).status_int == 300


@pytest.mark.parametrize(
    ("path", "accept", "expected"),
    [
        ("/v1/segments", "application/vnd.openstack.masakari+json", "vnd.openstack.masakari+json"),
        ("/v1/segments", "application/json;q=0.5, */*", "vnd.openstack.masakari+json"),
        ("/v1/segments", "*/*", "json"),
        ("/v1/segments", "text/html", "json"),
        ("/v1/segments", "nonsense", "json"),
        ("/v1/segments.json", "application/vnd.openstack.masakari+json", "json"),
    ],
)
def test_the_answer_has_the_media_type_that_is_preferred(
    make_client, path: str, accept: str, expected: str
):
    answer = make_client()("GET", path, headers={"Accept": accept})

    assert answer.headers["Content-Type"] == f"application/{expected}"
