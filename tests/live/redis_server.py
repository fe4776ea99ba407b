"""A real Redis server on a loopback port of its own, and what it says of itself."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

STARTS_WITHIN_S = 300


def missing() -> str | None:
    """What is not there to run one; None if all is."""
    if shutil.which("redis-server") is None:
        return "no redis-server here; apt-get install redis-server"
    try:
        import redis  # noqa: F401
    except ImportError:
        return "no package redis here; pip install redis"
    return None


class RedisServer:
    """Keeps nothing on disk. `port` stays the same when it is started again."""

    def __init__(self, folder: Path):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        import redis

        options = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": self._folder}
        command = ["redis-server", *(part for name, value in options.items() for part in (f"--{name}", str(value)))]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self.client = redis.Redis(port=self.port, host="127.0.0.1")
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                self.client.ping()
                return
            except redis.exceptions.ConnectionError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.02)

    def stop(self) -> None:
        """As if it had died; does nothing if it has."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """It accepts connections but answers nothing until `resume`."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def has_unread(self) -> bool:
        """True if a client has sent something that the server has not read."""
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, _, _, queues, *_ = line.split()
            if int(local.partition(":")[2], 16) == self.port and int(queues.partition(":")[2], 16):
                return True
        return False

    def calls(self) -> dict[str, int]:
        """The server's own account: how often each command came, refused or not, as {"get": 3, "set": 1}."""
        stats = self.client.info("commandstats")
        return {n.removeprefix("cmdstat_"): known["calls"] + known["rejected_calls"] for n, known in stats.items()}
