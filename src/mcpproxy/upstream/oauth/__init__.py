"""May we talk to this server, and if not, who has to do what?"""

from mcpproxy.upstream.oauth.callback import page
from mcpproxy.upstream.oauth.errors import AuthUnavailable, LoginFailed, NeedsLogin
from mcpproxy.upstream.oauth.logins import Logins

__all__ = ["AuthUnavailable", "LoginFailed", "Logins", "NeedsLogin", "page"]
