"""Which words can follow which? Made from the commands: python -m mcpproxy.cli.reference"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORDS: dict[str, Any] = {
    "help": "One MCP endpoint in front of all your MCP servers",
    "options": {
        "--config": ("FILE", "The configuration file"),
        "--data-dir": ("DIR", "Where the database, keys and logs are"),
        "-o": ("table|json|yaml", "How to print the answer"),
        "--output": ("table|json|yaml", "How to print the answer"),
        "--json": ("", "The same as -o json"),
        "--log-level": ("debug|info|warning|error", "What to log on stderr"),
    },
    "arguments": [],
    "commands": {
        "serve": {
            "help": "Run the proxy",
            "options": {
                "--listen": ("ADDRESS", "Address to listen on, such as 127.0.0.1:8080"),
                "--stdio": ("", "Serve MCP on stdin and stdout instead of HTTP"),
                "--demo": ("", "Add the built-in demo server, with a throw-away data directory"),
            },
            "arguments": [],
        },
        "call": {
            "help": "Call a tool, checked and recorded exactly like an agent's call",
            "options": {},
            "arguments": [],
            "commands": {
                "tool-read": {
                    "help": "Call a tool that only reads",
                    "options": {
                        "--tool-name": ("SERVER:TOOL", "The tool, if not given as a word"),
                        "--args": (
                            "JSON",
                            "The arguments as a JSON object; @FILE reads them from a file, - from stdin",
                        ),
                        "--json_args": ("JSON", "The same as --args"),
                        "--json-args": ("JSON", "The same as --args"),
                        "--reason": ("TEXT", "Why, for the record"),
                        "--sensitivity": ("KIND", "Of the data: public, internal, private or unknown"),
                        "--save": ("PATH", "Write images, sounds and files of the result here (file or folder)"),
                    },
                    "arguments": ["SERVER:TOOL [KEY=VALUE]"],
                },
                "tool-write": {
                    "help": "Call a tool that creates or changes something",
                    "options": {
                        "--tool-name": ("SERVER:TOOL", "The tool, if not given as a word"),
                        "--args": (
                            "JSON",
                            "The arguments as a JSON object; @FILE reads them from a file, - from stdin",
                        ),
                        "--json_args": ("JSON", "The same as --args"),
                        "--json-args": ("JSON", "The same as --args"),
                        "--reason": ("TEXT", "Why, for the record"),
                        "--sensitivity": ("KIND", "Of the data: public, internal, private or unknown"),
                        "--save": ("PATH", "Write images, sounds and files of the result here (file or folder)"),
                    },
                    "arguments": ["SERVER:TOOL [KEY=VALUE]"],
                },
                "tool-destructive": {
                    "help": "Call a tool that deletes, or does what cannot be undone",
                    "options": {
                        "--tool-name": ("SERVER:TOOL", "The tool, if not given as a word"),
                        "--args": (
                            "JSON",
                            "The arguments as a JSON object; @FILE reads them from a file, - from stdin",
                        ),
                        "--json_args": ("JSON", "The same as --args"),
                        "--json-args": ("JSON", "The same as --args"),
                        "--reason": ("TEXT", "Why, for the record"),
                        "--sensitivity": ("KIND", "Of the data: public, internal, private or unknown"),
                        "--save": ("PATH", "Write images, sounds and files of the result here (file or folder)"),
                    },
                    "arguments": ["SERVER:TOOL [KEY=VALUE]"],
                },
            },
        },
        "tools": {
            "help": "Find, look at and approve the tools of all servers",
            "options": {},
            "arguments": [],
            "commands": {
                "list": {
                    "help": "List the tools and how each is to be called",
                    "options": {"--server": ("NAME", "Only of this server")},
                    "arguments": [],
                },
                "search": {
                    "help": "Find tools by what they do: the same search that agents use",
                    "options": {
                        "-n": ("N", "How many"),
                        "--limit": ("N", "How many"),
                        "--explain": ("", "Say why each tool ranks where it does"),
                        "--tool": ("SERVER:TOOL", "With --explain: why this one ranks there, or is missing"),
                    },
                    "arguments": ["QUERY"],
                },
                "show": {
                    "help": "Show one tool: what it does, what it takes and gives, and how to call it",
                    "options": {},
                    "arguments": ["SERVER:TOOL"],
                },
                "diff": {
                    "help": "Show what waits for approval: what changed, the "
                    "dangerous part first, and what the scan says about it",
                    "options": {},
                    "arguments": ["SERVER | SERVER:TOOL"],
                },
                "approve": {
                    "help": "Look at what waits, and let it be used exactly as shown",
                    "options": {
                        "--reject": ("", "Refuse these versions instead"),
                        "-y": ("", "Do not ask"),
                        "--yes": ("", "Do not ask"),
                    },
                    "arguments": ["SERVER | SERVER:TOOL"],
                },
            },
        },
        "upstream": {
            "help": "Add, watch and manage the servers behind the proxy",
            "options": {},
            "arguments": [],
            "commands": {
                "list": {"help": "List the servers and how they are", "options": {}, "arguments": []},
                "add": {
                    "help": "Add a server to the configuration and start it",
                    "options": {
                        "--env": ("KEY=VALUE", "Environment of the command; KEY alone is looked up at start"),
                        "--header": ("'NAME: VALUE'", "Header for a server with a URL"),
                        "--cwd": ("DIR", "Where to start the command"),
                        "--protocol": ("KIND", "stdio, http or sse"),
                        "--trust": ("HOW", "first_use, manual or scan"),
                        "--quarantine": ("", "Do not start it before it is approved"),
                        "--disabled": ("", "Do not start it before it is enabled"),
                        "--no-wait": ("", "Do not wait until the server is ready or has failed"),
                    },
                    "arguments": ["NAME", "URL | -- COMMAND [ARG]"],
                },
                "add-json": {
                    "help": "Add a server from the JSON that its documentation gives for other clients",
                    "options": {"--no-wait": ("", "Do not wait until the server is ready or has failed")},
                    "arguments": ["NAME", "JSON"],
                },
                "remove": {"help": "Take a server out of the configuration", "options": {}, "arguments": ["NAME"]},
                "enable": {"help": "Start a server and let its tools be used", "options": {}, "arguments": ["NAME"]},
                "disable": {
                    "help": "Stop a server and take its tools away, until it is enabled again",
                    "options": {},
                    "arguments": ["NAME"],
                },
                "approve": {
                    "help": "Let a quarantined server run with everything "
                    "that it lists first, or approve all that waits "
                    "on a server",
                    "options": {},
                    "arguments": ["NAME"],
                },
                "restart": {
                    "help": "End a server's process or connection and start it anew",
                    "options": {},
                    "arguments": ["NAME"],
                },
                "login": {
                    "help": "Log in to a server that asks for it: prints a "
                    "link, and waits until you are done in the browser",
                    "options": {},
                    "arguments": ["NAME"],
                },
                "logout": {
                    "help": "Forget the login of a server, in memory, file and keyring",
                    "options": {},
                    "arguments": ["NAME"],
                },
                "logs": {
                    "help": "Print what a server wrote to stderr (!), and what mcpproxy has to say about it (-)",
                    "options": {
                        "-n": ("N", "How many of the last lines"),
                        "--lines": ("N", "How many of the last lines"),
                        "-f": ("", "Go on with what it says next"),
                        "--follow": ("", "Go on with what it says next"),
                    },
                    "arguments": ["NAME"],
                },
                "import": {
                    "help": "Take over the servers of Claude, Cursor, VS Code, Gemini or another mcpproxy",
                    "options": {
                        "--from": (
                            "CLIENT",
                            "Only from claude-desktop, claude-code, cursor, vscode, gemini or mcpproxy",
                        ),
                        "-y": ("", "Do not ask"),
                        "--yes": ("", "Do not ask"),
                    },
                    "arguments": ["[FILE]"],
                },
            },
        },
        "activity": {
            "help": "See what happened: every call, every refusal, every change",
            "options": {},
            "arguments": [],
            "commands": {
                "list": {
                    "help": "List records, newest first",
                    "options": {
                        "--type": ("TYPE", "tool_call, policy_decision, server_change, tool_change, …"),
                        "--status": ("STATUS", "success, error, blocked, warning, rejected or interrupted"),
                        "--server": ("NAME", "Only of this server"),
                        "--tool": ("TOOL", "Only of this tool: its bare name, or SERVER:TOOL"),
                        "--intent-type": ("KIND", "read, write or destructive"),
                        "--request-id": ("ID", "Every record of one call"),
                        "--session-id": ("ID", "Every record of one session"),
                        "--since": ("TIME", "From then on: an age such as 30m, 24h or 7d, a date, or a time"),
                        "--until": ("TIME", "Before then"),
                        "-q": ("WORDS", "All of these words in the tool's name, error or reason"),
                        "--query": ("WORDS", "All of these words in the tool's name, error or reason"),
                        "-n": ("N", "How many, at most"),
                        "--limit": ("N", "How many, at most"),
                        "--cursor": ("CURSOR", "Go on where a list ended (its next_cursor)"),
                    },
                    "arguments": [],
                },
                "show": {
                    "help": "Show one record: intent, decision, arguments and response",
                    "options": {},
                    "arguments": ["ID"],
                },
                "watch": {
                    "help": "Follow what happens, live",
                    "options": {
                        "--type": ("TYPE", "tool_call, policy_decision, server_change, tool_change, …"),
                        "--status": ("STATUS", "success, error, blocked, warning, rejected or interrupted"),
                        "--server": ("NAME", "Only of this server"),
                        "--tool": ("TOOL", "Only of this tool: its bare name, or SERVER:TOOL"),
                        "--intent-type": ("KIND", "read, write or destructive"),
                        "--request-id": ("ID", "Every record of one call"),
                    },
                    "arguments": [],
                },
                "summary": {
                    "help": "Count what happened, by type, status, intent, server and tool",
                    "options": {"--period": ("PERIOD", "1h, 24h, 7d or 30d")},
                    "arguments": [],
                },
                "export": {
                    "help": "Write records out, oldest first",
                    "options": {
                        "--format": ("FORMAT", "jsonl (with its hashes) or csv"),
                        "--file": ("FILE", "Where to"),
                        "--type": ("TYPE", "tool_call, policy_decision, server_change, tool_change, …"),
                        "--status": ("STATUS", "success, error, blocked, warning, rejected or interrupted"),
                        "--server": ("NAME", "Only of this server"),
                        "--tool": ("TOOL", "Only of this tool: its bare name, or SERVER:TOOL"),
                        "--intent-type": ("KIND", "read, write or destructive"),
                        "--request-id": ("ID", "Every record of one call"),
                        "--session-id": ("ID", "Every record of one session"),
                        "--since": ("TIME", "From then on: an age such as 30m, 24h or 7d, a date, or a time"),
                        "--until": ("TIME", "Before then"),
                        "-q": ("WORDS", "All of these words in the tool's name, error or reason"),
                        "--query": ("WORDS", "All of these words in the tool's name, error or reason"),
                    },
                    "arguments": [],
                },
                "verify": {
                    "help": "Check that nothing was altered: every record "
                    "against its hash, every chain against its "
                    "signatures",
                    "options": {},
                    "arguments": [],
                },
            },
        },
        "token": {
            "help": "Hand out tokens to agents, and take them back",
            "options": {},
            "arguments": [],
            "commands": {
                "create": {
                    "help": "Make a token",
                    "options": {
                        "--name": ("NAME", "What to call it"),
                        "--servers": ("GLOBS", "The servers that it sees, separated by commas"),
                        "--tools": ("GLOBS", "The tools that it sees: NAME or SERVER:NAME"),
                        "--allow": ("KINDS", "The calls that it may make: read, write, destructive"),
                        "--expires": ("TIME", "How long it holds: 12h, 30d, or never"),
                    },
                    "arguments": [],
                },
                "list": {"help": "List the tokens and what each of them may do", "options": {}, "arguments": []},
                "revoke": {
                    "help": "End a token at once, with the sessions that it opened",
                    "options": {},
                    "arguments": ["NAME | ID"],
                },
            },
        },
        "config": {
            "help": "Look at the configuration",
            "options": {},
            "arguments": [],
            "commands": {
                "show": {
                    "help": "Print the whole configuration with its defaults, secrets hidden",
                    "options": {},
                    "arguments": [],
                },
                "validate": {"help": "Check a configuration file", "options": {}, "arguments": ["[FILE]"]},
                "path": {
                    "help": "Print which configuration file is in force; with -o json, the data directory too",
                    "options": {},
                    "arguments": [],
                },
            },
        },
        "connect": {
            "help": "Write the proxy into a client's own configuration: shows the change, asks, and keeps a backup",
            "options": {
                "--undo": ("", "Take the change back"),
                "--preview": ("", "Show what would be written, and stop"),
                "-y": ("", "Do not ask"),
                "--yes": ("", "Do not ask"),
                "--token": ("TOKEN", "An agent token for the client, where agents need one"),
                "--stdio": ("", "Have the client start mcpproxy by itself instead of reaching the daemon"),
            },
            "arguments": ["CLIENT"],
        },
        "dashboard": {
            "help": "Print a link that lets a browser into the dashboard, once and within five minutes",
            "options": {"--open": ("", "Open the link in the browser, too")},
            "arguments": [],
        },
        "doctor": {
            "help": "Examine configuration, files, database, log, port, secrets, servers and "
            "tools; says what to do about each",
            "options": {
                "--fix": ("", "Repair what can be repaired safely, such as file modes"),
                "--quick": ("", "Leave out the check of every record on the log"),
                "--salvage": ("DIR", "Copy what can be read of a damaged database to a new one in this folder"),
            },
            "arguments": [],
        },
        "status": {
            "help": "Say whether the daemon runs, with what, and what needs you",
            "options": {},
            "arguments": [],
        },
        "completion": {
            "help": "Print the script that lets a shell complete commands, options, "
            "servers, tools and their parameters",
            "options": {},
            "arguments": ["SHELL"],
        },
        "version": {"help": "Print the version", "options": {}, "arguments": []},
    },
}
