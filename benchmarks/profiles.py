"""Profiles for benchmarks: random code addresses of one binary, one location and one sample each."""

import random

import numpy as np

from symbolize.elf import ElfImage
from symbolize.profile import Locations, Mappings, Profile, Samples, ValueType


def text_vaddrs(image: ElfImage, count: int, seed: int = 1) -> list[int]:
    """`count` distinct random vaddrs of `.text`, ascending; all of it if it is smaller."""
    section = image.find(".text")
    if section is None:
        raise SystemExit(f"{image.path}: no .text")
    chosen = random.Random(seed).sample(range(section.vaddr, section.vaddr + section.size), min(count, section.size))
    return sorted(chosen)


def random_profile(image: ElfImage, vaddrs: list[int]) -> Profile:
    """An unsymbolized profile with a sample at each of `vaddrs`, in a mapping with the build id of `image`.

    The mapping is that of everything, whose addresses are vaddrs.
    """
    count = len(vaddrs)
    profile = Profile()
    add = profile.strings.add
    profile.sample_types = [ValueType(add(b"samples"), add(b"count"))]
    mappings = Mappings.zeros(1)
    mappings.limit[0] = (1 << 64) - 1
    mappings.filename[0] = add(b"/opt/" + image.path.rpartition("/")[2].encode())
    mappings.build_id[0] = add((image.build_id or "").encode())
    profile.mappings = mappings
    profile.locations = Locations(
        np.array(vaddrs, np.uint64),
        np.zeros(count, np.int32),
        np.zeros(count, np.bool_),
        np.zeros(count + 1, np.int64),
    )
    profile.samples = Samples(
        np.arange(count + 1),
        np.arange(count, dtype=np.int32),
        np.ones((count, 1), np.int64),
        np.zeros(count + 1, np.int64),
    )
    return profile
