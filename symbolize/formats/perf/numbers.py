"""Numbers of perf.data (include/uapi/linux/perf_event.h, tools/lib/perf/include/perf/event.h), and those that the
compiled modules of this package share with their callers. Compiled modules include them as C constants."""

# Records.
MMAP = 1
LOST = 2
COMM = 3
EXIT = 4
FORK = 7
SAMPLE = 9
MMAP2 = 10
LOST_SAMPLES = 13
NAMESPACES = 16
KSYMBOL = 17
CGROUP = 19
CALLCHAIN_DEFERRED = 22
USER_RECORDS = 64
"""The first of the types that perf itself writes. They have no trailer."""
HEADER_ATTR = 64
TRACING_DATA = 66
BUILD_ID = 67
FINISHED_ROUND = 68
AUXTRACE = 71
EVENT_UPDATE = 78
TIME_CONV = 79
HEADER_FEATURE = 80
COMPRESSED = 81
COMPRESSED2 = 83
SIMPLEPERF_RECORDS = 32768
"""The first of the types that simpleperf adds."""
RECORD_HEADER = 8
"""Bytes of type, misc and size, with which records begin."""

# The misc field.
MODE_MASK = 7
KERNEL_MODE = 1
USER_MODE = 2
HYPERVISOR_MODE = 3
GUEST_KERNEL_MODE = 4
GUEST_USER_MODE = 5
MISC_BIT13 = 0x2000
"""Data of a MMAP, the exec of a COMM or FORK."""
MISC_BUILD_ID = 0x4000
"""A MMAP2 has a build id in place of the inode."""
MISC_BUILD_ID_SIZE = 0x8000

# sample_type.
HAS_IP = 1 << 0
HAS_TID = 1 << 1
HAS_TIME = 1 << 2
HAS_ADDR = 1 << 3
HAS_READ = 1 << 4
HAS_CALLCHAIN = 1 << 5
HAS_ID = 1 << 6
HAS_CPU = 1 << 7
HAS_PERIOD = 1 << 8
HAS_STREAM_ID = 1 << 9
HAS_RAW = 1 << 10
HAS_BRANCH_STACK = 1 << 11
HAS_REGS_USER = 1 << 12
HAS_STACK_USER = 1 << 13
HAS_WEIGHT = 1 << 14
HAS_DATA_SRC = 1 << 15
HAS_IDENTIFIER = 1 << 16
HAS_TRANSACTION = 1 << 17
HAS_REGS_INTR = 1 << 18
HAS_PHYS_ADDR = 1 << 19
HAS_CGROUP = 1 << 21
HAS_WEIGHT_STRUCT = 1 << 24

# read_format.
READ_ENABLED = 1 << 0
READ_RUNNING = 1 << 1
READ_ID = 1 << 2
READ_GROUP = 1 << 3
READ_LOST = 1 << 4

# branch_sample_type.
BRANCH_CALL_STACK = 1 << 11
BRANCH_HW_INDEX = 1 << 17
BRANCH_COUNTERS = 1 << 19
BRANCH_ENTRY = 24
"""Bytes of a branch: from, to, flags."""

ABI_32 = 1

# What an event has in the table of events, a row of words each.
SAMPLE_TYPE = 0
READ_FORMAT = 1
BRANCH_TYPE = 2
USER_REGISTERS = 3
INTR_REGISTERS = 4
"""How many registers are recorded."""
FIXED_PERIOD = 5
"""What a sample without a period counts."""
HAS_TRAILER = 6
STACK_SIZE = 7
IP_REGISTER = 8
"""Which of the registers is the pc, plus 1; 0: none."""
TIME_AT = 9
"""Where in a sample the time is, counted from the begin of the record; 0: nowhere."""
TRAILER_TIME = 10
"""Where in the trailer of other records, counted from their end; 0: nowhere."""
PER_THREAD = 11
"""Whether each thread has counters of its own, whose ids are those of the event."""
EVENT_WORDS = 12

NO_EVENT = -1

# Status of a scan for records.
MORE = 0
"""The data ends, in a record or behind the last one: `pos` is where it does."""
OTHER = 1
"""A record for the caller, at `begin`; `pos` is behind it."""
BAD = 2
"""What is at `pos` is no record."""
FULL = 3
"""So many records are queued that the first of them have to be processed."""

# Status of a run over queued records.
DONE = 0
SIDE_BAND = 1
"""A record for the caller, at `begin` up to `end`."""
UNKNOWN_THREAD = 2
"""The thread `pid`, `tid` is not there yet."""
STALE_MAPS = 3
"""The maps of the process `process` have to be entered into the pool."""
DEFERRED = 4
"""A sample waits for its user callchain; its parts are in the attributes."""

# Mappings that stand for addresses outside of all others.
UNKNOWN_MAPPING = 0
KERNEL_MAPPING = 1
GUEST_MAPPING = 2
HYPERVISOR_MAPPING = 3
STAND_INS = 4

KERNEL_PROCESS = 0
"""The row of the process whose maps are those of the kernel."""

# Context markers in callchains, as distances below 2⁶⁴; all from MAX_MARKER to 1 are markers.
MAX_MARKER = 4095
MARK_HYPERVISOR = 32
MARK_KERNEL = 128
MARK_USER = 512
MARK_USER_DEFERRED = 640
MARK_GUEST = 2048
MARK_GUEST_KERNEL = 2176
MARK_GUEST_USER = 2560

# Words of a process: the string of its comm, its maps in the pool, the version of these, the address space they are for
# stack dumps, whether its samples are wanted, and whether the times of these are kept.
COMM_OF = 0
FIRST = 1
COUNT = 2
VERSION = 3
SPACE = 4
WANTED = 5
TIMED = 6
PROCESS_WORDS = 7
STALE = -1
NO_SPACE = -1

# Labels that were asked for.
LABEL_PID = 1 << 0
LABEL_TID = 1 << 1
LABEL_COMM = 1 << 2
LABEL_THREAD_COMM = 1 << 3
LABEL_CPU = 1 << 4
LABEL_CGROUP = 1 << 5
LABEL_MODE = 1 << 6
LABEL_TIME = 1 << 7

# Words of a context, which is what a sample has beside stack, event and values.
CONTEXT_THREAD = 0
CONTEXT_COMMS = 1
CONTEXT_CPU = 2
CONTEXT_TIME = 3
CONTEXT_WORDS = 4

# Words of a sample: its key, and the sums.
ROW_EVENT = 0
ROW_CONTEXT = 1
ROW_STACK = 2
ROW_COUNT = 3
ROW_VALUE = 4

# Words of a sample whose time is kept.
TIMED_ROW = 0
TIMED_AT = 1
TIMED_VALUE = 2
TIMED_WORDS = 3

# Words of a stack dump, behind which are the registers.
DUMP_ROW = 0
DUMP_OFFSET = 1
DUMP_SIZE = 2
DUMP_FLAGS = 3
DUMP_SPACE = 4
DUMP_ROWS = 5
DUMP_WORDS = 6
DUMP_32BIT = 1
DUMP_FULL = 2

LOWEST_CODE = 4096
"""Addresses below, which no mapping holds, are what a walk along frame pointers ends with."""
