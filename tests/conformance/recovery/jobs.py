"""Plays many scenarios, some at a time: each job has a cloud, a database, a vhost and an API."""

import json
import queue
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from masakari_ng.demo.cloud import SimulatedCloud
from tests.conformance.recovery.scenario import HISTORY, Play, read
from tests.daemons import Api, Daemons
from tests.servers import MariaDB, RabbitMQ


@dataclass
class Played:
    """What came of one scenario.

    Attributes:
        result: as a golden file has it.
        error: what ended the play early.
        logs: title and end of each engine's log.
    """

    result: dict[str, Any] | None = None
    error: Exception | None = None
    logs: list[tuple[str, str]] = field(default_factory=list)


class Job:
    """Where one scenario at a time can be played."""

    def __init__(
        self, folder: Path, mariadb: MariaDB, template: str, rabbitmq: RabbitMQ, *, native: bool
    ) -> None:
        self._mariadb = mariadb
        self._folder = folder
        self._native = native
        self._url = mariadb.create_schema()
        self._schema = mariadb.schema_of(self._url)
        mariadb.copy_schema(template, self._schema)
        mariadb.sql(self._schema, HISTORY)
        self._broker = rabbitmq.url(rabbitmq.new_vhost())
        self._cloud = SimulatedCloud()
        self._cloud.start()
        folder.mkdir()
        self._daemons = self._made_daemons(folder)
        self._api: Api | None = None

    def play(self, path: Path) -> Played:
        """Play a scenario file; its configurations, logs and result stay in a folder of its own."""
        folder = self._folder / path.stem
        folder.mkdir()
        daemons = self._made_daemons(folder)
        played = Played()
        try:
            self._api = self._api or self._daemons.api()
            self._empty()
            play = Play(
                read(path),
                api=self._api,
                daemons=daemons,
                cloud=self._cloud,
                mariadb=self._mariadb,
                schema=self._schema,
                native=self._native,
            )
            play.run()
            played.result = play.result()
            (folder / "result.json").write_text(
                json.dumps(played.result, indent=1, sort_keys=True) + "\n"
            )
        except Exception as error:  # noqa: BLE001 - the test of this scenario reports it
            played.error = error
        finally:
            played.logs = daemons.logs()
            daemons.close()
        return played

    def close(self) -> None:
        self._daemons.close()
        self._cloud.stop()

    def _made_daemons(self, folder: Path) -> Daemons:
        return Daemons(folder, database=self._url, broker=self._broker, cloud=self._cloud.url)

    def _empty(self) -> None:
        shown = self._mariadb.sql(self._schema, "SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'")
        tables = [row[f"Tables_in_{self._schema}"] for row in shown]
        clear = [f"TRUNCATE `{table}`" for table in tables if "alembic" not in table]
        self._mariadb.sql(self._schema, ";\n".join(["SET FOREIGN_KEY_CHECKS=0", *clear]))


class Jobs:
    """Plays scenarios on all jobs, beginning with the first ones."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs = list(jobs)
        self._free: queue.Queue[Job] = queue.Queue()
        for job in self._jobs:
            self._free.put(job)
        self._pool = ThreadPoolExecutor(len(self._jobs))

    def begin(self, path: Path) -> Future[Played]:
        """Play a scenario as soon as a job is free."""
        return self._pool.submit(self._play, path)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for job in self._jobs:
            job.close()

    def _play(self, path: Path) -> Played:
        job = self._free.get()
        try:
            return job.play(path)
        finally:
            self._free.put(job)
