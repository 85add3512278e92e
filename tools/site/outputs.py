"""Puts what commands print now below them on the pages: `python -m tools.site.outputs`, then look at the diff."""

import argparse
import tempfile
from pathlib import Path

from tests.support.docs_examples import PAGES, blocks, run_blocks
from tests.support.http_server import HttpServer


def main() -> None:
    """Renew the outputs on all pages; a command that fails keeps its own."""
    argparse.ArgumentParser(description="Put what commands print now into the documentation.").parse_args()
    for page in PAGES:
        if not any(block.output for block in blocks(page)):
            continue
        text = page.read_text()
        with tempfile.TemporaryDirectory() as folder, HttpServer(lambda request: request.reply(404)) as server:
            for block, result in run_blocks(page, Path(folder), server.url):
                old = f"```sh\n{block.text}```\n\n```\n{block.output}```\n"
                if block.output and not result.code:
                    text = text.replace(old, old.replace(block.output, result.printed))
                elif block.output:
                    print(f"{page}:{block.line}: failed:\n{result.printed}")
        page.write_text(text)


if __name__ == "__main__":
    main()
