"""Regenerate the committed protobuf modules: `python protos/generate.py [OUTPUT_DIRECTORY]` (needs grpcio-tools)."""

import sys
from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
COMMITTED = HERE.parent / "symbolize" / "proto"


def generate(output: Path) -> None:
    """Write one `NAME_pb2.py` and its typed stub into `output` for every `.proto` file beside this script."""
    for source in sorted(HERE.glob("*.proto")):
        arguments = ["protoc", f"-I{HERE}", f"--python_out={output}", f"--pyi_out={output}", str(source)]
        if protoc.main(arguments) != 0:
            raise SystemExit(f"protoc failed for {source.name}")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else COMMITTED)
