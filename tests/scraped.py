"""What Prometheus reads, as numbers."""

import requests
from prometheus_client.parser import text_string_to_metric_families

Numbers = dict[tuple[str, ...], float]
"""A value by the name of its sample and the values of its labels, in the order of their names."""


def scrape(port: int) -> Numbers:
    """Every sample that is served on this port."""
    with requests.Session() as session:
        session.trust_env = False
        return numbers_of(session.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text)


def numbers_of(text: str) -> Numbers:
    """Every sample in the text, without the times that prometheus-client adds."""
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def of(numbers: Numbers, name: str) -> Numbers:
    """The samples of one name, by labels alone."""
    return {key[1:]: value for key, value in numbers.items() if key[0] == f"masakari_ng_{name}"}
