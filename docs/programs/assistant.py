"""Asks what a coding assistant asks `compilediag mcp`, and prints the answers: `python assistant.py run.cdiag`."""

import asyncio
import json
import sys
import textwrap

from mcp import Client, StdioServerParameters


async def main(path: str) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "compilediag", "mcp", path])
    async with Client(server) as client:

        async def ask(tool: str, **values: object) -> str:
            result = await client.call_tool(tool, values)
            text = "".join(part.text for part in result.content)
            print(f"> {tool}({', '.join(f'{name}={value!r}' for name, value in values.items())})")
            print("\n".join(textwrap.shorten(line, 110, placeholder=" ...") for line in text.splitlines()), end="\n\n")
            return text

        print("tools:", ", ".join(tool.name for tool in (await client.list_tools()).tools), end="\n\n")
        overview = json.loads(await ask("overview"))
        await ask("explain", fingerprint=overview["findings"][0]["fingerprint"])
        await ask("query", query="graph_breaks")
        await ask("query", query="DROP TABLE compiles")


asyncio.run(main(sys.argv[1]))
