"""A pprof file whose samples have labels of all kinds."""

from tests.support.messages import profile_pb2

TEXTS = b" cpu nanoseconds main leaf comm tid size bytes a b c".split(b" ")
LABELS = [
    [("comm", "a", 0, ""), ("tid", "", 7, "")],
    [("comm", "b", 0, ""), ("tid", "", 8, "")],
    [("comm", "a", 0, ""), ("comm", "c", 0, "")],
    [("size", "", 2048, "bytes")],
    [("comm", "b", 0, "")],
]


def labelled() -> bytes:
    """Samples with texts, numbers, two values of a key, without a label, and the last without a stack."""
    at = [each.decode() for each in TEXTS].index
    message = profile_pb2.Profile(string_table=TEXTS)
    message.sample_type.add(type=1, unit=2)
    for number, name in enumerate(("leaf", "main"), start=1):
        message.function.add(id=number, name=at(name), system_name=at(name))
        message.location.add(id=number).line.add(function_id=number)
    for number, labels in enumerate(LABELS):
        sample = message.sample.add(location_id=[1, 2] if number < len(LABELS) - 1 else [], value=[10**number])
        for key, text, value, unit in labels:
            sample.label.add(key=at(key), str=at(text), num=value, num_unit=at(unit))
    return message.SerializeToString()
