from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Record(_message.Message):
    __slots__ = ("sample", "lost", "file", "thread", "meta_info", "context_switch")
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    META_INFO_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_SWITCH_FIELD_NUMBER: _ClassVar[int]
    sample: Sample
    lost: LostSituation
    file: File
    thread: Thread
    meta_info: MetaInfo
    context_switch: ContextSwitch
    def __init__(self, sample: _Optional[_Union[Sample, _Mapping]] = ..., lost: _Optional[_Union[LostSituation, _Mapping]] = ..., file: _Optional[_Union[File, _Mapping]] = ..., thread: _Optional[_Union[Thread, _Mapping]] = ..., meta_info: _Optional[_Union[MetaInfo, _Mapping]] = ..., context_switch: _Optional[_Union[ContextSwitch, _Mapping]] = ...) -> None: ...

class Sample(_message.Message):
    __slots__ = ("time", "thread_id", "callchain", "event_count", "event_type_id", "unwinding_result")
    class CallChainEntry(_message.Message):
        __slots__ = ("vaddr_in_file", "file_id", "symbol_id", "execution_type")
        class ExecutionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            NATIVE_METHOD: _ClassVar[Sample.CallChainEntry.ExecutionType]
            INTERPRETED_JVM_METHOD: _ClassVar[Sample.CallChainEntry.ExecutionType]
            JIT_JVM_METHOD: _ClassVar[Sample.CallChainEntry.ExecutionType]
            ART_METHOD: _ClassVar[Sample.CallChainEntry.ExecutionType]
        NATIVE_METHOD: Sample.CallChainEntry.ExecutionType
        INTERPRETED_JVM_METHOD: Sample.CallChainEntry.ExecutionType
        JIT_JVM_METHOD: Sample.CallChainEntry.ExecutionType
        ART_METHOD: Sample.CallChainEntry.ExecutionType
        VADDR_IN_FILE_FIELD_NUMBER: _ClassVar[int]
        FILE_ID_FIELD_NUMBER: _ClassVar[int]
        SYMBOL_ID_FIELD_NUMBER: _ClassVar[int]
        EXECUTION_TYPE_FIELD_NUMBER: _ClassVar[int]
        vaddr_in_file: int
        file_id: int
        symbol_id: int
        execution_type: Sample.CallChainEntry.ExecutionType
        def __init__(self, vaddr_in_file: _Optional[int] = ..., file_id: _Optional[int] = ..., symbol_id: _Optional[int] = ..., execution_type: _Optional[_Union[Sample.CallChainEntry.ExecutionType, str]] = ...) -> None: ...
    class UnwindingResult(_message.Message):
        __slots__ = ("raw_error_code", "error_addr", "error_code")
        class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            NONE: _ClassVar[Sample.UnwindingResult.ErrorCode]
            UNKNOWN: _ClassVar[Sample.UnwindingResult.ErrorCode]
            NOT_ENOUGH_STACK: _ClassVar[Sample.UnwindingResult.ErrorCode]
            MEMORY_INVALID: _ClassVar[Sample.UnwindingResult.ErrorCode]
            UNWIND_INFO: _ClassVar[Sample.UnwindingResult.ErrorCode]
            INVALID_MAP: _ClassVar[Sample.UnwindingResult.ErrorCode]
            MAX_FRAME_EXCEEDED: _ClassVar[Sample.UnwindingResult.ErrorCode]
            REPEATED_FRAME: _ClassVar[Sample.UnwindingResult.ErrorCode]
            INVALID_ELF: _ClassVar[Sample.UnwindingResult.ErrorCode]
        NONE: Sample.UnwindingResult.ErrorCode
        UNKNOWN: Sample.UnwindingResult.ErrorCode
        NOT_ENOUGH_STACK: Sample.UnwindingResult.ErrorCode
        MEMORY_INVALID: Sample.UnwindingResult.ErrorCode
        UNWIND_INFO: Sample.UnwindingResult.ErrorCode
        INVALID_MAP: Sample.UnwindingResult.ErrorCode
        MAX_FRAME_EXCEEDED: Sample.UnwindingResult.ErrorCode
        REPEATED_FRAME: Sample.UnwindingResult.ErrorCode
        INVALID_ELF: Sample.UnwindingResult.ErrorCode
        RAW_ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
        ERROR_ADDR_FIELD_NUMBER: _ClassVar[int]
        ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
        raw_error_code: int
        error_addr: int
        error_code: Sample.UnwindingResult.ErrorCode
        def __init__(self, raw_error_code: _Optional[int] = ..., error_addr: _Optional[int] = ..., error_code: _Optional[_Union[Sample.UnwindingResult.ErrorCode, str]] = ...) -> None: ...
    TIME_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    CALLCHAIN_FIELD_NUMBER: _ClassVar[int]
    EVENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    UNWINDING_RESULT_FIELD_NUMBER: _ClassVar[int]
    time: int
    thread_id: int
    callchain: _containers.RepeatedCompositeFieldContainer[Sample.CallChainEntry]
    event_count: int
    event_type_id: int
    unwinding_result: Sample.UnwindingResult
    def __init__(self, time: _Optional[int] = ..., thread_id: _Optional[int] = ..., callchain: _Optional[_Iterable[_Union[Sample.CallChainEntry, _Mapping]]] = ..., event_count: _Optional[int] = ..., event_type_id: _Optional[int] = ..., unwinding_result: _Optional[_Union[Sample.UnwindingResult, _Mapping]] = ...) -> None: ...

class LostSituation(_message.Message):
    __slots__ = ("sample_count", "lost_count")
    SAMPLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LOST_COUNT_FIELD_NUMBER: _ClassVar[int]
    sample_count: int
    lost_count: int
    def __init__(self, sample_count: _Optional[int] = ..., lost_count: _Optional[int] = ...) -> None: ...

class File(_message.Message):
    __slots__ = ("id", "path", "symbol", "mangled_symbol")
    ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    MANGLED_SYMBOL_FIELD_NUMBER: _ClassVar[int]
    id: int
    path: bytes
    symbol: _containers.RepeatedScalarFieldContainer[bytes]
    mangled_symbol: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, id: _Optional[int] = ..., path: _Optional[bytes] = ..., symbol: _Optional[_Iterable[bytes]] = ..., mangled_symbol: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Thread(_message.Message):
    __slots__ = ("thread_id", "process_id", "thread_name")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    THREAD_NAME_FIELD_NUMBER: _ClassVar[int]
    thread_id: int
    process_id: int
    thread_name: bytes
    def __init__(self, thread_id: _Optional[int] = ..., process_id: _Optional[int] = ..., thread_name: _Optional[bytes] = ...) -> None: ...

class MetaInfo(_message.Message):
    __slots__ = ("event_type", "app_package_name", "app_type", "android_sdk_version", "android_build_type", "trace_offcpu")
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    APP_PACKAGE_NAME_FIELD_NUMBER: _ClassVar[int]
    APP_TYPE_FIELD_NUMBER: _ClassVar[int]
    ANDROID_SDK_VERSION_FIELD_NUMBER: _ClassVar[int]
    ANDROID_BUILD_TYPE_FIELD_NUMBER: _ClassVar[int]
    TRACE_OFFCPU_FIELD_NUMBER: _ClassVar[int]
    event_type: _containers.RepeatedScalarFieldContainer[bytes]
    app_package_name: bytes
    app_type: bytes
    android_sdk_version: bytes
    android_build_type: bytes
    trace_offcpu: bool
    def __init__(self, event_type: _Optional[_Iterable[bytes]] = ..., app_package_name: _Optional[bytes] = ..., app_type: _Optional[bytes] = ..., android_sdk_version: _Optional[bytes] = ..., android_build_type: _Optional[bytes] = ..., trace_offcpu: _Optional[bool] = ...) -> None: ...

class ContextSwitch(_message.Message):
    __slots__ = ("switch_on", "time", "thread_id")
    SWITCH_ON_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    switch_on: bool
    time: int
    thread_id: int
    def __init__(self, switch_on: _Optional[bool] = ..., time: _Optional[int] = ..., thread_id: _Optional[int] = ...) -> None: ...
