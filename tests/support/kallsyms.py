"""A list of the symbols of a kernel."""

LINES = b"""\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000040 t helper
ffffffff81000080 W weak_one
ffffffff810000c0 w weaker_one
ffffffff81000100 R some_table
ffffffff81000200 T last_one
ffffffff81000300 T _etext
ffffffff81800000 D data_start
ffffffff82000000 T _sinittext
ffffffff82000010 t start_only
ffffffff82000020 T _einittext
ffffffffc0000000 t nft_do_chain\t[nf_tables]
ffffffffc0000100 t nft_last\t[nf_tables]
ffffffffc0004000 t other\t[xt_owner]
ffffffffc0200000 t bpf_prog_6deef7357e7b4530_sd_fw_egress\t[bpf]
ffffffffc0200100 t bpf_prog_1234567812345678\t[bpf]
ffffffffc0300000 t ftrace_trampoline\t[__builtin__ftrace]
"""
