"""Which binary answers for a mapping, and the vaddr of each address in it. Knows no formats."""

from symbolize.resolve.resolution import Resolution, Resolutions
from symbolize.resolve.resolver import MappingResolver, PendingDecode

__all__ = ["MappingResolver", "PendingDecode", "Resolution", "Resolutions"]
