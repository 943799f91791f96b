"""A stdio server with as many tools as asked for: `many.py COUNT FIRST`, standard library only."""

import json
import sys

VERBS = ("create", "list", "delete", "get", "search", "update", "merge", "close", "export", "assign")
NOUNS = "issue repository file user branch ticket page row invoice meeting image table".split()
PLACES = ("in a project", "of a team", "by its name", "for a customer", "since a date", "in the archive")


def tools(count: int, first: int = 0, word: str = "") -> "list[dict[str, object]]":
    """So many definitions that differ in their words, as those of real servers do; `word` stands in the first one."""
    found: list[dict[str, object]] = []
    for number in range(first, first + count):
        verb, noun = VERBS[number % 10], NOUNS[number // 10 % 12]
        place = PLACES[number // 120 % 6]
        more = f" {word}" if word and number == first else ""
        name = {"type": "string", "description": f"The name of the {noun}."}
        found.append(
            {
                "name": f"{verb}_{noun}_{number}",
                "description": f"{verb.title()} a {noun} {place}, variant {number}.{more}",
                "inputSchema": {"type": "object", "properties": {f"{noun}_name": name, "limit": {"type": "integer"}}},
                "annotations": {"readOnlyHint": verb in ("list", "get", "search", "export")},
            }
        )
    return found


def main() -> None:
    """Answer until stdin ends."""
    listed = tools(int(sys.argv[1]), int(sys.argv[2]))
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "initialize":
            answer["result"] = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "many", "version": "1"},
            }
        elif message["method"] == "tools/list":
            answer["result"] = {"tools": listed}
        elif message["method"] == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
