"""Protects the promise that tests run on servers of their own which can be broken and come back."""

import kombu
import pytest

from tests.servers import MariaDB, RabbitMQ


def test_database_keeps_what_was_committed_before_a_kill(mariadb: MariaDB, mariadb_url: str):
    schema = mariadb.schema_of(mariadb_url)
    mariadb.sql(schema, "CREATE TABLE t (n INT); INSERT INTO t VALUES (7)")

    mariadb.kill()
    with pytest.raises(Exception, match="Can't connect"):
        mariadb.sql(schema, "SELECT 1")
    mariadb.start()

    assert mariadb.sql(schema, "SELECT n FROM t") == [{"n": 7}]


def test_broker_comes_back_on_the_same_port(rabbitmq: RabbitMQ, rabbit_url: str):
    rabbitmq.kill()
    rabbitmq.start()

    with kombu.Connection(rabbit_url.replace("rabbit:", "amqp:")) as link:
        link.connect()
        assert link.connected
