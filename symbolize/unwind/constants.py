"""Numbers of call frame information (DWARF 5 §6.4 and §7), of rows of rules, and of why stacks end.

Compiled modules include them as C constants.
"""

# Instructions of call frame programs (DWARF 5 §7.24, and those of GNU and of the Arm 64-bit architecture).
DW_CFA_advance_loc = 0x40
DW_CFA_offset = 0x80
DW_CFA_restore = 0xC0
DW_CFA_nop = 0x00
DW_CFA_set_loc = 0x01
DW_CFA_advance_loc1 = 0x02
DW_CFA_advance_loc2 = 0x03
DW_CFA_advance_loc4 = 0x04
DW_CFA_offset_extended = 0x05
DW_CFA_restore_extended = 0x06
DW_CFA_undefined = 0x07
DW_CFA_same_value = 0x08
DW_CFA_register = 0x09
DW_CFA_remember_state = 0x0A
DW_CFA_restore_state = 0x0B
DW_CFA_def_cfa = 0x0C
DW_CFA_def_cfa_register = 0x0D
DW_CFA_def_cfa_offset = 0x0E
DW_CFA_def_cfa_expression = 0x0F
DW_CFA_expression = 0x10
DW_CFA_offset_extended_sf = 0x11
DW_CFA_def_cfa_sf = 0x12
DW_CFA_def_cfa_offset_sf = 0x13
DW_CFA_val_offset = 0x14
DW_CFA_val_offset_sf = 0x15
DW_CFA_val_expression = 0x16
DW_CFA_MIPS_advance_loc8 = 0x1D
DW_CFA_AARCH64_negate_ra_state_with_pc = 0x2C
DW_CFA_AARCH64_negate_ra_state = 0x2D
DW_CFA_GNU_args_size = 0x2E
DW_CFA_GNU_negative_offset_extended = 0x2F
CFA_OPERATION = 0xC0
CFA_OPERAND = 0x3F

# Operations of expressions (DWARF 5 §7.7.1).
DW_OP_deref = 0x06
DW_OP_const1u = 0x08
DW_OP_const8s = 0x0F
DW_OP_constu = 0x10
DW_OP_consts = 0x11
DW_OP_dup = 0x12
DW_OP_drop = 0x13
DW_OP_over = 0x14
DW_OP_pick = 0x15
DW_OP_swap = 0x16
DW_OP_rot = 0x17
DW_OP_abs = 0x19
DW_OP_and = 0x1A
DW_OP_minus = 0x1C
DW_OP_mul = 0x1E
DW_OP_neg = 0x1F
DW_OP_not = 0x20
DW_OP_or = 0x21
DW_OP_plus = 0x22
DW_OP_plus_uconst = 0x23
DW_OP_shl = 0x24
DW_OP_shr = 0x25
DW_OP_shra = 0x26
DW_OP_xor = 0x27
DW_OP_bra = 0x28
DW_OP_eq = 0x29
DW_OP_ge = 0x2A
DW_OP_gt = 0x2B
DW_OP_le = 0x2C
DW_OP_lt = 0x2D
DW_OP_ne = 0x2E
DW_OP_skip = 0x2F
DW_OP_lit0 = 0x30
DW_OP_lit31 = 0x4F
DW_OP_breg0 = 0x70
DW_OP_breg31 = 0x8F
DW_OP_bregx = 0x92
DW_OP_deref_size = 0x94
DW_OP_nop = 0x96

# How the value that a register has in the caller is found: the rules of DWARF 5 §6.4.1. `REGISTER` and `EXPRESSION` are
# those of the CFA too.
UNSPECIFIED = 0
UNDEFINED = 1
SAME_VALUE = 2
OFFSET = 3
VAL_OFFSET = 4
REGISTER = 5
EXPRESSION = 6
VAL_EXPRESSION = 7

# Columns of a row: the rule of the CFA, its register (or expression) and offset, the return address column, flags; then
# for each register its rule and the value of that.
CFA_RULE = 0
CFA_REGISTER = 1
CFA_VALUE = 2
RETURN_COLUMN = 3
FLAGS = 4
FIRST_RULE = 5
IS_SIGNAL = 1
EXPRESSION_SIZE_BITS = 16
EXPRESSION_SIZE = 0xFFFF

# Limits: frames of a stack (as of perf), states that a program remembers, bytes of an expression, its stack, operations
# of all expressions of a frame, instructions that may be carried out at once, and more for each address that is asked.
MAX_FRAMES = 127
MAX_STATES = 64
MAX_EXPRESSION = 0x1000
MAX_OPERANDS = 64
MAX_OPERATIONS = 1024
MAX_INSTRUCTIONS = 0x100000
MORE_INSTRUCTIONS = 0x1000

# Why a stack ends; `End` has them by name.
WAITING = 0
COMPLETE = 1
TRUNCATED = 2
NO_BINARY = 3
NO_FRAME_INFO = 4
BAD_FRAME_INFO = 5
NO_MAPPING = 6
OUTSIDE_DUMP = 7
NO_PROGRESS = 8
TOO_DEEP = 9
UNKNOWN_REGISTER = 10
NO_CALL = 11
NO_FILE = 12
NO_DUMP = 13
IS_32BIT = 14
OTHER_MACHINE = 15

# What is said of a site instead of rules: they depend on the time of the stack.
BY_TIME = 16

# How a walk came to its last frame: the code was interrupted there, it is a caller by rules, or by a frame pointer.
CALLER = 0
INTERRUPTED = 1
BY_POINTER = 2
