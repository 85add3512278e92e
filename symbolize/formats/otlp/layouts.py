"""Which fields of each message are read."""

from typing import Final

from symbolize.core.messages import MessageLayout
from symbolize.proto import otlp_profiles_tags as tags

MESSAGE: Final = MessageLayout(spans=(tags.PROFILES_DATA_RESOURCE_PROFILES, tags.PROFILES_DATA_DICTIONARY))
RESOURCE_PROFILES: Final = MessageLayout(
    spans=(
        tags.RESOURCE_PROFILES_RESOURCE,
        tags.RESOURCE_PROFILES_SCOPE_PROFILES,
        tags.RESOURCE_PROFILES_SCHEMA_URL,
    )
)
RESOURCE: Final = MessageLayout(spans=(tags.RESOURCE_ATTRIBUTES,))
SCOPE_PROFILES: Final = MessageLayout(
    spans=(tags.SCOPE_PROFILES_SCOPE, tags.SCOPE_PROFILES_PROFILES, tags.SCOPE_PROFILES_SCHEMA_URL)
)
SCOPE: Final = MessageLayout(
    spans=(
        tags.INSTRUMENTATION_SCOPE_NAME,
        tags.INSTRUMENTATION_SCOPE_VERSION,
        tags.INSTRUMENTATION_SCOPE_ATTRIBUTES,
    )
)
PROFILE: Final = MessageLayout(
    numbers=(
        tags.PROFILE_TIME_UNIX_NANO,
        tags.PROFILE_DURATION_NANO,
        tags.PROFILE_PERIOD,
        tags.PROFILE_DROPPED_ATTRIBUTES_COUNT,
    ),
    lists=(tags.PROFILE_ATTRIBUTE_INDICES,),
    spans=(
        tags.PROFILE_SAMPLE_TYPE,
        tags.PROFILE_SAMPLES,
        tags.PROFILE_PERIOD_TYPE,
        tags.PROFILE_PROFILE_ID,
        tags.PROFILE_ORIGINAL_PAYLOAD_FORMAT,
        tags.PROFILE_ORIGINAL_PAYLOAD,
    ),
)
VALUE_TYPE: Final = MessageLayout(numbers=(tags.VALUE_TYPE_TYPE_STRINDEX, tags.VALUE_TYPE_UNIT_STRINDEX))
SAMPLE: Final = MessageLayout(
    numbers=(tags.SAMPLE_STACK_INDEX, tags.SAMPLE_LINK_INDEX),
    lists=(tags.SAMPLE_ATTRIBUTE_INDICES, tags.SAMPLE_VALUES, tags.SAMPLE_TIMESTAMPS_UNIX_NANO),
)
DICTIONARY: Final = MessageLayout(
    spans=(
        tags.PROFILES_DICTIONARY_MAPPING_TABLE,
        tags.PROFILES_DICTIONARY_LOCATION_TABLE,
        tags.PROFILES_DICTIONARY_FUNCTION_TABLE,
        tags.PROFILES_DICTIONARY_LINK_TABLE,
        tags.PROFILES_DICTIONARY_STRING_TABLE,
        tags.PROFILES_DICTIONARY_ATTRIBUTE_TABLE,
        tags.PROFILES_DICTIONARY_STACK_TABLE,
    )
)
MAPPING: Final = MessageLayout(
    numbers=(
        tags.MAPPING_MEMORY_START,
        tags.MAPPING_MEMORY_LIMIT,
        tags.MAPPING_FILE_OFFSET,
        tags.MAPPING_FILENAME_STRINDEX,
    ),
    lists=(tags.MAPPING_ATTRIBUTE_INDICES,),
)
LOCATION: Final = MessageLayout(
    numbers=(tags.LOCATION_MAPPING_INDEX, tags.LOCATION_ADDRESS),
    lists=(tags.LOCATION_ATTRIBUTE_INDICES,),
    spans=(tags.LOCATION_LINES,),
)
LINE: Final = MessageLayout(numbers=(tags.LINE_FUNCTION_INDEX, tags.LINE_LINE, tags.LINE_COLUMN))
FUNCTION: Final = MessageLayout(
    numbers=(
        tags.FUNCTION_NAME_STRINDEX,
        tags.FUNCTION_SYSTEM_NAME_STRINDEX,
        tags.FUNCTION_FILENAME_STRINDEX,
        tags.FUNCTION_START_LINE,
    )
)
LINK: Final = MessageLayout(spans=(tags.LINK_TRACE_ID, tags.LINK_SPAN_ID))
STACK: Final = MessageLayout(lists=(tags.STACK_LOCATION_INDICES,))
ATTRIBUTE: Final = MessageLayout(
    numbers=(tags.KEY_VALUE_AND_UNIT_KEY_STRINDEX, tags.KEY_VALUE_AND_UNIT_UNIT_STRINDEX),
    spans=(tags.KEY_VALUE_AND_UNIT_VALUE,),
)
VALUE: Final = MessageLayout(
    numbers=(
        tags.ANY_VALUE_BOOL_VALUE,
        tags.ANY_VALUE_INT_VALUE,
        tags.ANY_VALUE_DOUBLE_VALUE,
        tags.ANY_VALUE_STRING_VALUE_STRINDEX,
    ),
    spans=(
        tags.ANY_VALUE_STRING_VALUE,
        tags.ANY_VALUE_ARRAY_VALUE,
        tags.ANY_VALUE_KVLIST_VALUE,
        tags.ANY_VALUE_BYTES_VALUE,
    ),
)
ARRAY: Final = MessageLayout(spans=(tags.ARRAY_VALUE_VALUES,))
PAIRS: Final = MessageLayout(spans=(tags.KEY_VALUE_LIST_VALUES,))
PAIR: Final = MessageLayout(numbers=(tags.KEY_VALUE_KEY_STRINDEX,), spans=(tags.KEY_VALUE_KEY, tags.KEY_VALUE_VALUE))
