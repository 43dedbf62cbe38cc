"""A TCP proxy in front of a server, which can be away in several ways and come back."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Coroutine
from typing import Any

from tests.servers import free_port

MODES = ("refused", "hanging", "slow")
_PAUSE = 0.1  # of each piece of data while slow


class Proxy:
    """Listens on loopback, in a thread of its own.

    Args:
        target: port of the server.

    Attributes:
        port: where it listens.
    """

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._slow = False
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._do(self._open())

    def spoil(self, mode: str) -> None:
        """Be away: `refused` ends connections and the port, `hanging` keeps both and says nothing,
        `slow` takes 0.1 s for each piece of data."""
        self._do({"refused": self._refuse, "hanging": self._hang, "slow": self._delay}[mode]())

    def mend(self) -> None:
        """Be back; what hung goes on."""
        self._do(self._open())

    def close(self) -> None:
        """Refuse, and leave no thread."""
        self._do(self._refuse())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _open(self) -> None:
        self._slow = False
        self._flowing.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()
        self._flowing.set()
        await asyncio.sleep(0)

    async def _hang(self) -> None:
        self._flowing.clear()

    async def _delay(self) -> None:
        self._slow = True

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        mine = {writer, there[1]}
        self._writers |= mine
        await asyncio.gather(
            _quietly(self._pump(reader, there[1])), _quietly(self._pump(there[0], writer))
        )
        self._writers -= mine

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._flowing.wait()
                if self._slow:
                    await asyncio.sleep(_PAUSE)
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


async def _quietly(pump: Awaitable[None]) -> None:
    """Ends of connections are what this is for."""
    with contextlib.suppress(OSError):
        await pump
