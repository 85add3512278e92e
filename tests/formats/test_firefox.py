"""What the Firefox Profiler is given, against the message of pprof that it was made from."""

import io
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

import symbolize
from tests.support.messages import profile_pb2
from tests.support.seeds import seeds

PATHS = ["/bin/app", "/lib/libx.so", "/opt/libx.so"]
"""Of the mappings; two have one file name."""
LABELS = [(), (("tid", 7), ("pid", 7)), (("tid", 8), ("pid", 7)), (("TID", -8), ("process_id", 9))]

Frame = tuple[str, str, int, int, int, str, str, tuple[str, str, int] | None]
"""Name, file, line, address in the mapped file, depth of inlining, category, file name of the library, and the native
symbol: library, name and address."""
NO_STACK: tuple[Frame, ...] = (("[no stack]", "", 0, -1, 0, "Unsymbolized", "", None),)


def random_message(rng: random.Random) -> Any:
    """A profile in which little is alike: mappings at file offsets, functions of one name in two files, inlined frames,
    unnamed code, folded functions, samples without a stack or a value, and labels."""
    message: Any = profile_pb2.Profile()
    strings: dict[str, int] = {"": 0}

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings))

    message.sample_type.add(type=string("cpu"), unit=string("ms"))
    for number, path in enumerate(PATHS, start=1):
        start = 0x10000 * number
        message.mapping.add(
            id=number, memory_start=start, memory_limit=start + 0x8000, file_offset=0x1000 * (number - 1),
            filename=string(path), has_functions=True,
        )  # fmt: skip
    for number in range(1, 7):
        name, file = f"f{number % 3}", f"/src/{number % 2}.c"
        message.function.add(id=number, name=string(name), system_name=string(name), filename=string(file))
    for number in range(1, 13):
        mapping = rng.randrange(1, 4)
        location = message.location.add(
            id=number, mapping_id=mapping, address=0x10000 * mapping + 0x10 * rng.randrange(1, 0x800)
        )
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            location.line.add(function_id=rng.randrange(1, 7), line=rng.randrange(3))
        location.is_folded = bool(location.line) and rng.random() < 0.2
    for _ in range(20):
        stack = [rng.randrange(1, 13) for _ in range(rng.randrange(5))]
        sample = message.sample.add(value=[rng.choice([0, -3, 5, 11])], location_id=stack)
        for key, value in rng.choice(LABELS):
            sample.label.add(key=string(key), num=value)
    message.string_table.extend(text.encode() for text in strings)
    return message


def in_message(message: Any) -> dict[tuple[Any, Any], Counter[tuple[Frame, ...]]]:
    """The values of the stacks of each process and thread."""
    return {thread: of_samples(message, own) for thread, own in by_thread(message).items()}


def by_thread(message: Any) -> dict[tuple[Any, Any], list[Any]]:
    """The samples of each process and thread."""
    text = [each.decode() for each in message.string_table]
    samples = defaultdict(list)
    for sample in message.sample:
        labels = {text[label.key].lower(): label.num for label in sample.label}
        samples[labels.get("process_id", labels.get("pid")), labels.get("tid")].append(sample)
    return samples


def of_samples(message: Any, samples: Any) -> Counter[tuple[Frame, ...]]:
    """The values of the stacks of some samples, of those that have any."""
    text = [each.decode() for each in message.string_table]
    mappings, functions = ({each.id: each for each in rows} for rows in (message.mapping, message.function))
    locations = {each.id: each for each in message.location}
    stacks = [[locations[number] for number in sample.location_id] for sample in samples]
    first: dict[tuple[int, tuple[str, str]], int] = {}

    def place(location: Any) -> int:
        mapping = mappings[location.mapping_id]
        return int(location.address - mapping.memory_start + mapping.file_offset)

    def function(line: Any) -> tuple[str, str]:
        found = functions[line.function_id]
        return text[found.name], text[found.filename]

    def frames(location: Any) -> Iterator[Frame]:
        path = text[mappings[location.mapping_id].filename]
        library = path.rpartition("/")[2]
        if not location.line:
            yield f"[{library}]", "", 0, place(location), 0, "Unsymbolized", library, None
            return
        outer = function(location.line[-1])
        symbol = path, outer[0], first[location.mapping_id, outer]
        for row, line in enumerate(location.line):
            depth = len(location.line) - 1 - row
            category = "Folded" if location.is_folded else "Inlined" if depth else "Named"
            yield *function(line), line.line, place(location), depth, category, library, symbol

    for location in (each for stack in stacks for each in stack if each.line):
        key = location.mapping_id, function(location.line[-1])
        first[key] = min(first.get(key, 1 << 62), place(location))
    counts = Counter[tuple[Frame, ...]]()
    for sample, stack in zip(samples, stacks, strict=True):
        counts[tuple(frame for location in stack for frame in frames(location)) or NO_STACK] += sample.value[0]
    return Counter({stack: value for stack, value in counts.items() if value})


def in_file(data: bytes) -> dict[tuple[Any, Any], Counter[tuple[Frame, ...]]]:
    """The same, as the tables of the file say; a thread or process whose labels say nothing is None."""
    file = json.loads(data)
    result = {}
    for thread in file["threads"]:
        ids = tuple(None if thread[key] == "unknown" else int(thread[key]) for key in ("pid", "tid"))
        assert ids not in result
        result[ids] = in_thread(thread, [each["path"] for each in file["libs"]], file["meta"]["categories"])
    return result  # type: ignore[return-value]


def in_thread(thread: Any, paths: list[str], categories: Any) -> Counter[tuple[Frame, ...]]:
    """The values of the stacks of a thread."""
    texts, frames, functions = thread["stringArray"], thread["frameTable"], thread["funcTable"]
    symbols, resources, nodes = thread["nativeSymbols"], thread["resourceTable"], thread["stackTable"]

    def symbol_at(row: int | None) -> tuple[str, str, int] | None:
        if row is None:
            return None
        return paths[symbols["libIndex"][row]], texts[functions["name"][symbols["name"][row]]], symbols["address"][row]

    def frame(row: int) -> Frame:
        function = frames["func"][row]
        file, resource = functions["fileName"][function], functions["resource"][function]
        library = texts[resources["name"][resource]] if resource >= 0 else ""
        assert resource < 0 or paths[resources["lib"][resource]].rpartition("/")[2] == library
        return (
            texts[functions["name"][function]],
            "" if file is None else texts[file],
            frames["line"][row] or 0,
            frames["address"][row],
            frames["inlineDepth"][row],
            categories[frames["category"][row]]["name"],
            library,
            symbol_at(frames["nativeSymbol"][row]),
        )

    def path(node: int | None) -> Iterator[Frame]:
        while node is not None:
            assert nodes["category"][node] == frames["category"][nodes["frame"][node]]
            yield frame(nodes["frame"][node])
            node = nodes["prefix"][node]

    counts = Counter[tuple[Frame, ...]]()
    for node, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"], strict=True):
        counts[tuple(path(node))] += weight
    return counts


@pytest.mark.parametrize("numbers", seeds(200))
def test_all_that_is_shown(numbers: list[int]) -> None:
    """Each stack of each thread has the frames of the message, with what the viewer shows of them."""
    for seed in numbers:
        message = random_message(random.Random(seed))
        out = io.BytesIO()
        symbolize.write(symbolize.load(io.BytesIO(message.SerializeToString())), out, emit="firefox")
        found = in_file(out.getvalue())
        assert found == in_message(message), seed
        samples = by_thread(message)
        weights = [sum(abs(each.value[0]) for each in samples[thread]) for thread in found]
        assert weights == sorted(weights, reverse=True), seed
