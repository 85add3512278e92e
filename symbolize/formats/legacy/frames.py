"""The frames that viewers leave out of stacks, for each kind of profile, as pprof gives them (R343, frames to leave
out).

Heaps have the functions that allocate and everything of Go's runtime, contention those that release locks, everything
else what a profiler of CPU time leaves on stacks.
"""

from typing import Final

PROFILER: Final = rb"ProfileData::(Add|prof_handler)|CpuProfiler::prof_handler|__pthread_sighandler|__restore"
"""What a profiler of CPU time leaves on top of stacks."""

ALLOCATORS: Final = rb"|".join(
    (
        rb"(tc_)?(c|m|re|v|pv)alloc|(tc_)?c?free|(do_|tc_)?memalign|(__|tc_)?posix_memalign",
        rb"tc_(new|delete)(array)?|tc_new(array)?_nothrow|tcmalloc::.*",
        rb"malloc_zone_(malloc|calloc|valloc|realloc|memalign|free)",
        rb"runtime\..*",
        rb"BaseArena::.*|(::)?do_malloc(_no_errno|_pages)?|DoSampledAllocation|MallocedMemBlock::MallocedMemBlock",
        rb"__builtin_(vec_)?(new|delete)|operator new(\[\])?|__libc_malloc|_M_allocate|allocate|cpp_alloc",
        rb"(__gnu_cxx::new_allocator|__malloc_alloc_template|simple_alloc)::allocate",
    )
)
"""Functions that allocate for others."""

ALLOCATORS_KEPT: Final = rb"runtime\.(panic|reflectcall|call[0-9]*)"
"""Of these, what may have called the allocating code."""

LOCKS: Final = rb"|".join(
    (
        rb"(base::)?(RecordLockProfileData|Submit(Mutex|SpinLock)ProfileData).*",
        rb"((base::)?Mutex::)?(AwaitCommon|Unlock|ReaderUnlock).*|((base::)?MutexLock::)?~MutexLock.*",
        rb"(SpinLock::)?(Unlock|SlowUnlock).*|(SpinLockHolder::)?~SpinLockHolder.*",
    )
)
"""Functions that release a lock and count who waited for it."""
