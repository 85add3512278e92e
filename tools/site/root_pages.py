"""Pages of the site that are files in the root of the repository: a hook of mkdocs."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, with their links as they are from the folder of the documentation."""
    for name in PAGES:
        text = (ROOT / name).read_text().replace("](docs/", "](")
        # What is no page stays in the checkout.
        text = re.sub(r"\[[^\]]*\]\(((?:fixtures|tests|tools)/[^)]*)\)", r"`\1`", text)
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to the pages lead to them."""
    return re.sub(rf"\]\(\.\./(?=(?:{'|'.join(map(re.escape, PAGES))})[#)])", "](", markdown)
