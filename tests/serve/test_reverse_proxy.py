"""The reverse proxy that the documentation shows."""

import re
import subprocess
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs" / "serve.md"


@pytest.mark.needs("nginx", "openssl")
def test_nginx_accepts_it(tmp_path: Path) -> None:
    """With a certificate in place of the one of the example."""
    block = re.search(r"```nginx\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert block is not None
    names = "-keyout", tmp_path / "symbols.key", "-out", tmp_path / "symbols.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=symbols.example"]
    subprocess.run([*command, *names], check=True, capture_output=True)
    server = block[1].replace("/etc/ssl", str(tmp_path))
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\n{server}\n}}\n")
    command = ["nginx", "-t", "-p", str(tmp_path), "-e", str(tmp_path / "errors"), "-c", str(tmp_path / "nginx.conf")]
    tested = subprocess.run(command, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stderr
