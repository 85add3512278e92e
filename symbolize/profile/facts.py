"""What is known of a whole profile: which locations have names, caveats, and facts of evidence, which readers know and
a comment keeps (R426, facts in a comment).

Other tools keep comments and merge them as a list. The comment names build ids and sample types, not rows, which other
tools order anew. What it says of leaves and stacks comes with the sums of the values for which it holds: where the sums
of all such comments are not those of the profile, others were merged or some left out, and nothing is known. Of several
claims the weaker one counts: an id that one calls read later is, what two say differently is unknown. Taking frames off
stacks forgets what leaves are.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt8, offsets_of
from symbolize.core.budget import json_cost
from symbolize.core.errors import printable
from symbolize.profile.model import IdOrigin, LeafKind, Mappings, Profile, StackSource

MARK_DIGITS: Final = 32
"""Digits of the mark of samples."""
NOT_PROVED: Final = "not proved to be what ran: "
"""What comments that are caveats begin with."""
FACTS_PREFIX: Final = b"#symbolize evidence: "
"""How the comment with facts begins; pprof shows none that begin with `#`."""
READ_LATER: Final = "build ids read later"
STACKS: Final = "stacks"
LEAVES: Final = "leaves"
MAX_COST: Final = 64 << 20
"""Bytes that the comments of a profile may take in memory; those of one in which they take more are not read."""

Kind = TypeVar("Kind", LeafKind, StackSource)


def lines_per_location(profile: Profile, wanted: Bool) -> Int64:
    """How many of the lines that `wanted` selects each location has: int64[n]."""
    total = offsets_of(wanted)
    offsets = profile.locations.line_offsets
    count: Int64 = total[offsets[1:]] - total[offsets[:-1]]
    return count


def named_locations(profile: Profile) -> Bool:
    """Which locations have a line whose function has a name: bool[n]."""
    return lines_per_location(profile, profile.functions.name[profile.locations.lines.function] != 0) > 0


def samples_mark(profile: Profile) -> str:
    """A text that is the same for results of the same samples: of their time, their sums and where their leaves are, in
    hex. How many there are, and their callers, depend on what is found; most recordings have no time, and those that
    take as long have equal sums."""
    samples = profile.samples
    values, has_leaf = samples.values, np.diff(samples.location_offsets) > 0
    address = profile.locations.address[samples.locations[samples.location_offsets[:-1][has_leaf]]]
    by_leaf = (values[has_leaf].astype(np.uint64) * address[:, None]).sum(axis=0)
    facts = profile.time_nanos, sorted(zip(values.sum(axis=0).tolist(), by_leaf.tolist(), strict=True))
    return sha256(repr(facts).encode()).hexdigest()[:MARK_DIGITS]


def set_flags(profile: Profile, touched: Bool) -> None:
    """Make the `has_*` flags of the mappings `touched` true to the lines of their locations."""
    locations, mappings = profile.locations, profile.mappings
    lines = locations.lines
    filename = profile.functions.filename[lines.function] if len(lines) else np.zeros(0, np.int32)
    facts = {
        "has_functions": named_locations(profile),
        "has_filenames": lines_per_location(profile, filename > 0) > 0,
        "has_line_numbers": lines_per_location(profile, lines.line > 0) > 0,
        "has_inline_frames": np.diff(locations.line_offsets) > 1,
    }
    for flag, fact in facts.items():
        found = np.zeros(len(mappings), np.bool_)
        found[locations.mapping[fact & (locations.mapping >= 0)]] = True
        setattr(mappings, flag, np.where(touched, found, getattr(mappings, flag)))


def caveats_of(profile: Profile) -> list[str]:
    """The sentences that came with a profile, or were made when it was symbolized."""
    return [profile.strings.text(row) for row in profile.comments if is_caveat(profile, row)]


def is_caveat(profile: Profile, row: int) -> bool:
    """Whether a comment, given by its row among the strings, is such a sentence."""
    return profile.strings[row].startswith(NOT_PROVED.encode())


def with_caveats(profile: Profile, caveats: Sequence[str], *, keeps_earlier: bool) -> Profile:
    """The profile with these sentences, beside earlier ones or instead of them."""
    earlier = set() if keeps_earlier else {row for row in profile.comments if is_caveat(profile, row)}
    if not earlier and not caveats:
        return profile
    added = profile.strings.add_all([printable(text).encode() for text in caveats]).tolist()
    kept = [each for each in profile.comments if each not in earlier and each not in added]
    return replace(profile, comments=[*kept, *added])


class Facts(NamedTuple):
    """What a comment says: the build ids that were read later, who found the callers, and for each sample type, by its
    text, what the leaves are, and the sum of the values for which that holds."""

    read_later: set[str]
    stacks: StackSource
    leaves: dict[str, tuple[LeafKind, int]]


def recorded_ids(mappings: Mappings) -> UInt8:
    """The origins of the build ids of mappings, in formats that record each with its mapping."""
    return np.where(mappings.build_id != 0, IdOrigin.RECORDED, IdOrigin.UNKNOWN).astype(np.uint8)


def set_leaves(profile: Profile, kind: LeafKind, source: StackSource) -> None:
    """Say what the leaves of a profile are in all its sample types, and who found its callers."""
    profile.leaf_kinds = np.full(len(profile.sample_types), kind, np.uint8)
    profile.stack_source = source


def with_comment(profile: Profile) -> Profile:
    """The profile with its facts as the last comment, if they count; it is not changed.

    They do if ids were read later, and where a mapping has none or such a one if leaves are exact or it is known how
    callers were found.
    """
    mappings, later = profile.mappings, profile.id_origins == IdOrigin.READ_LATER
    facts = Facts(set(), StackSource.UNKNOWN, {})
    if later.any():
        facts = facts._replace(read_later=set(map(profile.strings.text, mappings.build_id[later].tolist())) - {""})
    is_evidence = (profile.leaf_kinds == LeafKind.EXACT).any() or profile.stack_source > StackSource.RECORDER
    if is_evidence and (later.any() or (mappings.build_id == 0).any()):
        leaves = {
            text: (profile.leaf_kind(column), exact_sum(profile.samples.values[:, column]))
            for column, text in enumerate(type_texts(profile))
        }
        facts = facts._replace(stacks=profile.stack_source, leaves=leaves)
    if not (facts.read_later or facts.leaves):
        return profile
    strings = profile.strings.copy()
    return replace(profile, strings=strings, comments=[*profile.comments, strings.add(text_of(facts))])


def take_comments(profile: Profile) -> None:
    """Take the comments with facts off a profile that was read: it knows them then, and of several the weaker ones."""
    texts = {row: profile.strings[row] for row in set(profile.comments)}
    own = [row for row in dict.fromkeys(profile.comments) if texts[row].startswith(FACTS_PREFIX)]
    if not own:
        return
    profile.comments = [row for row in profile.comments if row not in own]
    if sum(json_cost(texts[row]) + len(texts[row]) for row in own) > MAX_COST:
        return
    said = [facts_in(texts[row]) for row in own]
    later = set().union(*(facts.read_later for facts in said))
    mappings = profile.mappings
    names = {row for row in set(mappings.build_id.tolist()) if row and profile.strings.text(row) in later}
    if names:
        origins = profile.id_origins if len(profile.id_origins) else np.zeros(len(mappings), np.uint8)
        is_later = np.isin(mappings.build_id, list(names))
        profile.id_origins = np.where(is_later, IdOrigin.READ_LATER, origins).astype(np.uint8)
    _take_leaves(profile, [facts for facts in said if facts.leaves])


def _take_leaves(profile: Profile, said: list[Facts]) -> None:
    """Take over what is said of leaves and stacks where it holds for all values: where these were merged with others
    of which nothing is said, or are not there any more, their sum is another one."""
    kinds: list[LeafKind] = []
    values, texts = profile.samples.values, type_texts(profile)
    are_whole = bool(said)
    for column, text in enumerate(texts):
        claims = [facts.leaves[text] for facts in said if text in facts.leaves]
        is_whole = texts.count(text) == 1 and sum(total for _, total in claims) == exact_sum(values[:, column])
        kinds.append(agreed({kind for kind, _ in claims}, LeafKind.UNKNOWN) if is_whole else LeafKind.UNKNOWN)
        are_whole &= is_whole and bool(claims)
    if any(kinds):
        profile.leaf_kinds = np.array(kinds, np.uint8)
    if are_whole:
        profile.stack_source = StackSource.of_all({facts.stacks for facts in said})


def agreed(claims: set[Kind], unknown: Kind) -> Kind:
    """What several claims say if they say the same."""
    return next(iter(claims)) if len(claims) == 1 else unknown


def type_texts(profile: Profile) -> list[str]:
    """The sample types of a profile as comments have them."""
    text = profile.strings.text
    return [f"{text(each.type)}/{text(each.unit)}" for each in profile.sample_types]


def exact_sum(values: Int64) -> int:
    """The sum of values, which may exceed 64 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def text_of(facts: Facts) -> bytes:
    """A comment with facts."""
    said: dict[str, Any] = {READ_LATER: sorted(facts.read_later)} if facts.read_later else {}
    if facts.leaves:
        said[STACKS] = word_of(facts.stacks)
        said[LEAVES] = {text: [word_of(kind), total] for text, (kind, total) in facts.leaves.items()}
    return FACTS_PREFIX + json.dumps(said, ensure_ascii=False).encode()


def facts_in(text: bytes) -> Facts:
    """The facts in a comment; what is damaged in it says nothing."""
    try:
        said = json.loads(text[len(FACTS_PREFIX) :].decode("utf-8", "backslashreplace"))
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        said = {}
    later, leaves = said.get(READ_LATER), said.get(LEAVES)
    return Facts(
        {each for each in later if isinstance(each, str)} if isinstance(later, list) else set(),
        kind_of(said.get(STACKS), StackSource.UNKNOWN),
        dict(read_leaves(leaves)) if isinstance(leaves, dict) else {},
    )


def read_leaves(leaves: dict[str, Any]) -> Iterator[tuple[str, tuple[LeafKind, int]]]:
    """What a comment says of the leaves of each sample type."""
    for text, claim in leaves.items():
        match claim:
            case [word, int(total)]:
                yield text, (kind_of(word, LeafKind.UNKNOWN), total)


def word_of(kind: IntEnum) -> str:
    """A kind as comments have it."""
    return kind.name.lower().replace("_", " ")


def kind_of(word: Any, unknown: Kind) -> Kind:
    """The kind that a word of a comment stands for."""
    return next((each for each in type(unknown) if word_of(each) == word), unknown)
