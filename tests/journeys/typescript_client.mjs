// An agent written with the official TypeScript SDK: node typescript_client.mjs PACKAGE URL
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [, , name, url, modules] = process.argv;
const require = createRequire(`${modules}/`);
const load = (path) => import(pathToFileURL(require.resolve(path)).href);
const { Client, StreamableHTTPClientTransport } =
  name === "client"
    ? await load("@modelcontextprotocol/client")
    : {
        ...(await load("@modelcontextprotocol/sdk/client/index.js")),
        ...(await load("@modelcontextprotocol/sdk/client/streamableHttp.js")),
      };

const client = new Client({ name: "journey", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const call = (tool, args, options) => client.callTool({ name: tool, arguments: args }, ...options);
const plain = name === "client" ? [] : [undefined];
const reports = [];
const watched = { onprogress: (report) => reports.push(report.progress) };

const answer = {
  tools: (await client.listTools()).tools.map((tool) => [tool.name, tool.annotations?.readOnlyHint]),
  found: (await call("retrieve_tools", { query: "list my notes" }, plain)).structuredContent.tools[0].name,
  read: (await call("call_tool_read", { name: "demo:list_notes" }, plain)).structuredContent.notes.length,
  refused: (await call("call_tool_read", { name: "demo:clear_notes" }, plain)).content[0].text,
  slow: (await call("call_tool_read", { name: "demo:slow_report", args: { seconds: 1 } }, [...plain, watched])).content[0]
    .text,
  reports: reports.length,
};
await client.close();
console.log(JSON.stringify(answer));
