"""The profiles by which the locations of an input are looked up once, not once for each process that has them."""

from collections.abc import Iterator, Sequence

import numpy as np

from symbolize.core.arrays import NONE, Bool, Int64, offsets_of, ranges
from symbolize.formats.model import LoadedProfile
from symbolize.formats.otlp.build import CPU_NANOSECONDS, OtlpGroup, comments_of, is_counted, locations_of
from symbolize.formats.otlp.frames import frames_of, process_frames
from symbolize.formats.otlp.labels import StringNumbers
from symbolize.formats.otlp.messages import Message
from symbolize.formats.products import check_products
from symbolize.formats.stand_ins import settle_stand_ins
from symbolize.profile.facts import recorded_ids, take_comments
from symbolize.profile.model import Labels, Profile, Samples, StackSource, ValueType
from symbolize.proto import otlp_profiles_tags as tags


def profiles_of_stacks(profiles: Sequence[LoadedProfile]) -> Iterator[Profile]:
    """What has to be looked up for the lines of some profiles of an OTLP input: of each message a profile of the
    stacks of all processes (R326, OTLP with lines), and behind it the profiles that need one of their own.

    A process needs one that has code without lines in the kernel, in no mapping, or in one without a build id: that
    code is known by the rest of the process.
    """
    messages: dict[int, list[tuple[LoadedProfile, OtlpGroup]]] = {}
    for each in profiles:
        assert each.group is not None
        messages.setdefault(id(each.group.message), []).append((each, each.group))
    for members in messages.values():
        message = members[0][1].message
        special = process_frames(message.dictionary)
        is_apart = needs_process(message, [group for _, group in members], special)
        shared = [group for (_, group), apart in zip(members, is_apart, strict=True) if not apart]
        if len(shared) > 1:
            yield profile_of_stacks(message, shared, special)
        for (loaded, _), apart in zip(members, is_apart, strict=True):
            if apart or len(shared) == 1:
                yield loaded.profile


def needs_process(message: Message, groups: Sequence[OtlpGroup], special: Bool) -> list[bool]:
    """Which groups have locations without names that are `special`."""
    dictionary = message.dictionary
    is_special = special & dictionary.without_names
    offsets, items = dictionary.stacks.list(tags.STACK_LOCATION_INDICES)
    items = np.minimum(items, np.uint64(len(is_special))).astype(np.int64)
    total = offsets_of(np.append(is_special, False)[items])
    has_special = np.append(total[offsets[1:]] > total[offsets[:-1]], False)  # the last is of stacks that are not there
    stacks = np.minimum(message.stacks, np.uint64(len(has_special) - 1)).astype(np.int64)
    total = offsets_of(has_special[stacks])
    first, last = samples_of(message, groups)
    return [bool(each) for each in total[last] > total[first]]


def samples_of(message: Message, groups: Sequence[OtlpGroup]) -> tuple[Int64, Int64]:
    """Where the samples of groups begin and end."""
    rows = np.array([each.profiles[0] for each in groups], np.int64)
    return message.sample_offsets[rows], message.sample_offsets[rows + 1]


def profile_of_stacks(message: Message, groups: Sequence[OtlpGroup], special: Bool) -> Profile:
    """The stacks of some groups, each once, weighed by how many samples have it in each sample type of the first group.
    Locations that are `special` have names, and no address here: in the memory of another process they would be other
    code. Raises InputError for stacks that multiply what the message has."""
    dictionary, profile = message.dictionary, Profile()
    message.made.begin(("stacks", message.first_location))
    first, last = samples_of(message, groups)
    stacks = message.stacks[ranges(first, last - first)]
    stacks = stacks[stacks < np.uint64(len(dictionary.stacks))].astype(np.int64)
    counts = np.bincount(stacks[dictionary.usable_stacks[stacks]], minlength=len(dictionary.stacks))
    rows = np.flatnonzero(counts)
    used, offsets, locations = locations_of(message, rows)
    strings = StringNumbers(dictionary, profile.strings)
    profile.locations, profile.mappings, profile.functions, profile.address_kinds = frames_of(
        dictionary, strings, used, keeps_mappings=False
    )
    profile.locations.address[special[used]] = 0
    profile.locations.mapping[special[used]] = NONE
    profile.locations.source_row = used + message.first_location
    types = groups[0].types()  # of which a caller may choose one
    if is_counted(groups[0]):
        types.append(CPU_NANOSECONDS)
    message.made.frames.spend(8 * len(rows) * len(types))
    values = np.repeat(counts[rows].reshape(-1, 1), len(types), axis=1)
    profile.sample_types = [ValueType(*map(profile.strings.add, each)) for each in types]
    profile.samples = Samples(offsets, locations, values, np.zeros(len(rows) + 1, np.int64), Labels())
    profile.id_origins, profile.stack_source = recorded_ids(profile.mappings), StackSource.RECORDER
    profile.comments = [profile.strings.add(text) for group in groups for text in comments_of(group)]
    take_comments(profile)
    profile.comments = []
    settle_stand_ins(profile)
    check_products(profile, message.budget.source)
    return profile
