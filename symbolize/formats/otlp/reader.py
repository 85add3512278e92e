"""From an input to the profiles of its messages."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from symbolize.core.budget import Budget
from symbolize.core.errors import InputError, first_names
from symbolize.core.messages import Rows, Spans
from symbolize.formats.content import Content
from symbolize.formats.model import LoadedProfile, LoadOptions
from symbolize.formats.otlp import layouts
from symbolize.formats.otlp.build import TYPE_ORDER, OtlpGroup, build, value_type
from symbolize.formats.otlp.containers import Container, framing_of, opened
from symbolize.formats.otlp.messages import Made, Message, Value, shown
from symbolize.proto import otlp_profiles_tags as tags

FREE_COST: Final = 48 << 20
MAX_COST_RATIO: Final = 16
"""Columns may take so much memory in any case, and so many times the size of a message (R276, size of tables)."""

MAX_GROUPS: Final = 1 << 14
"""Profiles of an input; each becomes a file."""

MAX_NAME: Final = 1 << 12
"""Bytes of what each profile is called; no path is longer."""

PROCESS_NAMES: Final = ("process.executable.name", "process.executable.path", "service.name", "container.id")
"""Attributes of a resource that say whose profile it is, the clearest first."""


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The profiles of all messages. Raises InputError where there is none."""
    framing = framing_of(content.head)
    assert framing is not None
    container = opened(content.whole(), framing, content.name)
    warnings = ["The input is cut short: its last message was left out."] if container.is_cut else []
    groups: list[OtlpGroup] = []
    locations = 0
    made = Made(content.name, sum(map(len, container.messages)))
    for data in container.messages:
        budget = Budget(content.name, len(data), FREE_COST, MAX_COST_RATIO)
        message = Message(data, budget, made, locations)
        locations += len(message.dictionary.locations)
        container.dictionaries.append(message.dictionary)
        groups += groups_of(message)
        warnings += _message_warnings(message)
    chosen = [each for each in groups if _is_chosen(each, options)]
    if not chosen:
        raise InputError(content.name, _nothing(groups))
    if len(chosen) > MAX_GROUPS:
        warnings.append(f"{len(chosen) - MAX_GROUPS} profiles were left out: the input has {len(chosen)}")
        del chosen[MAX_GROUPS:]
    has_times = any(len(each.message.timestamps[1]) for each in chosen)
    if has_times and not options.timestamps:
        warnings.append("The times of single events were left out: samples have the sum of their events.")
    found = [
        _loaded(replace(each, number=number, is_only=len(groups) == 1), len(chosen), options, container)
        for number, each in enumerate(chosen, 1)
    ]
    found[0].warnings[:0] = dict.fromkeys(warnings)
    return found


def _message_warnings(message: Message) -> Iterator[str]:
    """What was left out of a message."""
    if message.unknown:
        yield f"{message.unknown} fields that are not known here, or have another wire type, were left out"
    if message.is_old:
        yield "The samples have the order of fields of opentelemetry-proto 1.8 and 1.9."


def _nothing(groups: list[OtlpGroup]) -> str:
    """Why there is no profile."""
    if not groups:
        return "is OTLP without profiles"
    names = first_names(_process_of(each.resource) or kind_of(each) for each in groups)
    return f"the messages have no such profile; they have {names}"


def _is_chosen(group: OtlpGroup, options: LoadOptions) -> bool:
    """Whether a profile is wanted."""
    process = _process_of(group.resource).encode("utf-8", "surrogateescape")
    return options.choice.takes(kind_of(group), _pid_of(group.resource), process)


def kind_of(group: OtlpGroup) -> str:
    """What a profile is of, in a word: the type of its period, else that of its values."""
    kind = group.period_type()[0] or group.types()[0][0]
    return kind[:MAX_NAME].decode("utf-8", "backslashreplace") or "profile"


def _process_of(resource: Mapping[str, Value]) -> str:
    """Whose profile it is; empty if the resource does not say."""
    for key in PROCESS_NAMES:
        if isinstance(value := resource.get(key), bytes) and value:
            return os.path.basename(value[-MAX_NAME:].decode("utf-8", "backslashreplace"))
    return ""


def _pid_of(resource: Mapping[str, Value]) -> int | None:
    """The process of a profile."""
    pid = resource.get("process.pid")
    return pid if isinstance(pid, int) and not isinstance(pid, bool) else None


def _loaded(group: OtlpGroup, count: int, options: LoadOptions, container: Container) -> LoadedProfile:
    """A profile, made when it is asked for."""
    pid, process, kind = _pid_of(group.resource), _process_of(group.resource), kind_of(group)
    who = re.sub(r"[^A-Za-z0-9._-]", "_", str(pid) if pid is not None else process)[:64].lstrip(".")
    what = re.sub(r"[^A-Za-z0-9._-]", "_", kind)[:64]
    name = ".".join(filter(None, (f"profile.{group.number}", who, what))) if count > 1 else ""
    return LoadedProfile(
        name,
        partial(build, group, bool(options.timestamps), options.sample_labels or ()),
        kind=kind,
        pid=pid,
        process=process,
        container=container,
        group=group,
    )


def groups_of(message: Message) -> Iterator[OtlpGroup]:
    """The profiles of a message; those of one scope with the same samples are one (R324, profiles of a scope).

    They are successive, and have several sample types, in the order of `pprof.scope.sample_type_order`.
    """
    resource_attributes: dict[int, dict[str, Value]] = {}
    profiles = message.scopes.spans(tags.SCOPE_PROFILES_PROFILES)
    scopes = message.scopes.spans(tags.SCOPE_PROFILES_SCOPE)
    for scope, (first, last) in enumerate(
        zip(profiles.offsets[:-1].tolist(), profiles.offsets[1:].tolist(), strict=True)
    ):
        resource = int(message.resource_of[scope])
        if first == last:
            continue
        if resource not in resource_attributes:
            spans = message.resources.spans(tags.RESOURCE_PROFILES_RESOURCE).of_row(resource)
            rows = Rows(message.data, spans, layouts.RESOURCE, message.budget)
            found = message.dictionary.pairs(rows.spans(tags.RESOURCE_ATTRIBUTES))
            resource_attributes[resource] = dict(found)
        name, attributes = _scope(message, scopes.of_row(scope))
        order = _order(attributes, last - first)
        group: list[int] = []
        types: set[tuple[bytes, bytes]] = set()
        for row in (first + each for each in order):
            kind = value_type(message, tags.PROFILE_SAMPLE_TYPE, row)
            if group and (kind in types or not is_same(message, group[0], row)):
                yield OtlpGroup(message, tuple(group), resource_attributes[resource], attributes, name)
                group, types = [], set()
            group.append(row)
            types.add(kind)
        yield OtlpGroup(message, tuple(group), resource_attributes[resource], attributes, name)


def _scope(message: Message, spans: Spans) -> tuple[str, dict[str, Value]]:
    """Name with version, and attributes of a scope."""
    rows = Rows(message.data, spans, layouts.SCOPE, message.budget)
    words = []
    for tag in (tags.INSTRUMENTATION_SCOPE_NAME, tags.INSTRUMENTATION_SCOPE_VERSION):
        texts = rows.spans(tag)
        if len(texts):
            words.append(shown(bytes(message.data[int(texts.begins[-1]) : int(texts.ends[-1])])))
    attributes = rows.spans(tags.INSTRUMENTATION_SCOPE_ATTRIBUTES)
    return " ".join(filter(None, words)), dict(message.dictionary.pairs(attributes))


def _order(scope: dict[str, Value], count: int) -> list[int]:
    """The profiles of a scope in the order that their values had."""
    order = scope.get(shown(TYPE_ORDER))
    if isinstance(order, list) and sorted(filter(_is_int, order)) == list(range(count)):
        return sorted(range(count), key=lambda each: order[each])
    return list(range(count))


def _is_int(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_same(message: Message, first: int, row: int) -> bool:
    """Whether two profiles have the same samples, values aside, and the same time, period and attributes."""
    profiles = message.profiles
    numbers = tags.PROFILE_TIME_UNIX_NANO, tags.PROFILE_DURATION_NANO, tags.PROFILE_PERIOD
    if any(profiles.number(tag)[first] != profiles.number(tag)[row] for tag in numbers):
        return False
    offsets, items = profiles.list(tags.PROFILE_ATTRIBUTE_INDICES)
    attributes, others = (items[offsets[each] : offsets[each + 1]] for each in (first, row))
    if not np.array_equal(attributes, others):
        return False
    period_type, other_type = (value_type(message, tags.PROFILE_PERIOD_TYPE, each) for each in (first, row))
    if period_type != other_type:
        return False
    (begin, end), (other, other_end) = (message.sample_offsets[each : each + 2].tolist() for each in (first, row))
    if end - begin != other_end - other:
        return False
    for column in (message.stacks, message.links):
        if not np.array_equal(column[begin:end], column[other:other_end]):
            return False
    for offsets, items in (message.attributes, message.timestamps):
        mine, its = offsets[begin : end + 1], offsets[other : other_end + 1]
        if not np.array_equal(mine - mine[0], its - its[0]):
            return False
        if not np.array_equal(items[mine[0] : mine[-1]], items[its[0] : its[-1]]):
            return False
    return True
