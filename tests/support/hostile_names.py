"""Recorded names that try to lead somewhere."""

HOSTILE = [
    "../../secret", "/../secret", "~/secret", "file:///secret", "http://host/secret", "secret\0", "\n", "x" * 10_000,
    "/" * 10_000, "/newroot" * 1000, "/tmp/perf-" + "9" * 5000 + ".map", "jit-" + "1" * 5000 + ".dump",
    "base.apk!" * 1000, "base.apk!/../../secret", "../base.apk!/../secret", "[kernel.kallsyms]" + "_" * 5000,
    "/lib/modules/../secret/x.ko", "/lib/modules/" + "6" * 5000 + "/x.ko.xz", "vmlinux-../../secret",
    "[kernel.kallsyms]../secret", "/memfd:../secret (deleted)", "//deleted/../secret", "/proc/1/root/../secret",
    "/overlay/x/diff/../secret", "[" + "vdso" * 2000 + "]", "/a" * 5000 + ";abcdef12",
]  # fmt: skip
