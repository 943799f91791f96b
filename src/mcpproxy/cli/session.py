"""What does a command lean on? The options, the configuration, the data directory, the daemon where one runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mcpproxy.cli.errors import NO_DAEMON, Failure
from mcpproxy.cli.screen import Screen

if TYPE_CHECKING:
    from mcpproxy.cli.daemon import Daemon
    from mcpproxy.cli.options import Options
    from mcpproxy.config.load import Loaded
    from mcpproxy.config.models import Config
    from mcpproxy.storage.engine import Storage


class Session:
    """One run of the command line. Nothing is read before it is needed."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.screen = Screen(options.output)

    @cached_property
    def loaded(self) -> Loaded:
        """The configuration and where it came from."""
        from mcpproxy.config.load import open_config

        return open_config(self.options.config)

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.loaded.config

    @cached_property
    def data_dir(self) -> Path:
        """Where the database, keys and logs are."""
        from mcpproxy.config.load import data_dir

        return data_dir(self.options.data_dir)

    @cached_property
    def daemon(self) -> Daemon | None:
        """The running daemon: by its unix socket, else by the address in the configuration."""
        from mcpproxy.cli.daemon import at_address, at_socket

        return at_socket(self.data_dir) or at_address(lambda: self.config)

    def need_daemon(self, what: str) -> Daemon:
        """The running daemon; without one the command ends."""
        if self.daemon is None:
            where = f"{self.data_dir / 'mcpproxy.sock'} and {self.config.listen or 'stdio only'}"
            raise Failure(
                NO_DAEMON,
                f"no mcpproxy daemon is running (looked at {where}), and {what} needs one.",
                "Start it with: mcpproxy serve. One with another data directory, such as a demo, needs --data-dir.",
            )
        return self.daemon

    @contextlib.contextmanager
    def storage(self) -> Iterator[Storage]:
        """The database, to be read beside whoever writes it."""
        from mcpproxy.storage.engine import open_storage

        storage = open_storage(self.config.storage, self.data_dir, read_only=True)
        try:
            yield storage
        finally:
            storage.close()
