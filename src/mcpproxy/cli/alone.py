"""How does a command work where no daemon runs? With the whole proxy in this process, and only the servers it needs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec import structs

from mcpproxy.cli.errors import PERMISSION, Failure

if TYPE_CHECKING:
    from mcpproxy.app import App
    from mcpproxy.cli.session import Session


def app_with(session: Session, servers: Collection[str]) -> App:
    """The proxy with these servers of the configuration and no others, listening nowhere."""
    from mcpproxy.app import App
    from mcpproxy.cli.logs import set_up_logging
    from mcpproxy.config.files import private_dir
    from mcpproxy.config.mask import Masker

    masker = Masker()
    set_up_logging(session.options.log_level or "error", masker.mask)
    try:
        private_dir(session.data_dir)
    except OSError as error:
        message = f"the data directory {session.data_dir} cannot be used: {error.strerror}."
        raise Failure(PERMISSION, message) from None
    config = session.config
    needed = tuple(server for server in config.servers if server.name in servers)
    loaded = structs.replace(session.loaded, config=structs.replace(config, servers=needed, listen=""))
    return App(loaded, session.data_dir, masker, errand=True)
