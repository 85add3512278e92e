"""Numbers that DWARF 5 §7 and its GNU extensions name, as far as they are read, and those of this package's encodings.

Compiled modules include them as C constants.
"""

DW_TAG_array_type = 0x01
DW_TAG_class_type = 0x02
DW_TAG_enumeration_type = 0x04
DW_TAG_formal_parameter = 0x05
DW_TAG_lexical_block = 0x0B
DW_TAG_pointer_type = 0x0F
DW_TAG_reference_type = 0x10
DW_TAG_structure_type = 0x13
DW_TAG_subroutine_type = 0x15
DW_TAG_typedef = 0x16
DW_TAG_union_type = 0x17
DW_TAG_unspecified_parameters = 0x18
DW_TAG_inlined_subroutine = 0x1D
DW_TAG_base_type = 0x24
DW_TAG_const_type = 0x26
DW_TAG_subprogram = 0x2E
DW_TAG_template_type_parameter = 0x2F
DW_TAG_volatile_type = 0x35
DW_TAG_namespace = 0x39
DW_TAG_unspecified_type = 0x3B
DW_TAG_partial_unit = 0x3C
DW_TAG_rvalue_reference_type = 0x42
DW_TAG_call_site = 0x48
DW_TAG_GNU_call_site = 0x4109

DW_AT_sibling = 0x01
DW_AT_name = 0x03
DW_AT_stmt_list = 0x10
DW_AT_low_pc = 0x11
DW_AT_high_pc = 0x12
DW_AT_language = 0x13
DW_AT_comp_dir = 0x1B
DW_AT_inline = 0x20
DW_AT_producer = 0x25
DW_AT_abstract_origin = 0x31
DW_AT_artificial = 0x34
DW_AT_decl_column = 0x39
DW_AT_decl_file = 0x3A
DW_AT_decl_line = 0x3B
DW_AT_declaration = 0x3C
DW_AT_external = 0x3F
DW_AT_specification = 0x47
DW_AT_type = 0x49
DW_AT_entry_pc = 0x52
DW_AT_ranges = 0x55
DW_AT_call_column = 0x57
DW_AT_call_file = 0x58
DW_AT_call_line = 0x59
DW_AT_object_pointer = 0x64
DW_AT_signature = 0x69
DW_AT_linkage_name = 0x6E
DW_AT_str_offsets_base = 0x72
DW_AT_addr_base = 0x73
DW_AT_rnglists_base = 0x74
DW_AT_dwo_name = 0x76
DW_AT_call_all_calls = 0x7A
DW_AT_call_all_source_calls = 0x7B
DW_AT_call_all_tail_calls = 0x7C
DW_AT_call_return_pc = 0x7D
DW_AT_call_origin = 0x7F
DW_AT_call_pc = 0x81
DW_AT_call_tail_call = 0x82
DW_AT_MIPS_linkage_name = 0x2007
DW_AT_GNU_tail_call = 0x2115
DW_AT_GNU_all_tail_call_sites = 0x2116
DW_AT_GNU_all_call_sites = 0x2117
DW_AT_GNU_all_source_call_sites = 0x2118
DW_AT_GNU_dwo_name = 0x2130
DW_AT_GNU_dwo_id = 0x2131
DW_AT_GNU_ranges_base = 0x2132
DW_AT_GNU_addr_base = 0x2133
DW_AT_GNU_discriminator = 0x2136

DW_FORM_addr = 0x01
DW_FORM_block2 = 0x03
DW_FORM_block4 = 0x04
DW_FORM_data2 = 0x05
DW_FORM_data4 = 0x06
DW_FORM_data8 = 0x07
DW_FORM_string = 0x08
DW_FORM_block = 0x09
DW_FORM_block1 = 0x0A
DW_FORM_data1 = 0x0B
DW_FORM_flag = 0x0C
DW_FORM_sdata = 0x0D
DW_FORM_strp = 0x0E
DW_FORM_udata = 0x0F
DW_FORM_ref_addr = 0x10
DW_FORM_ref1 = 0x11
DW_FORM_ref2 = 0x12
DW_FORM_ref4 = 0x13
DW_FORM_ref8 = 0x14
DW_FORM_ref_udata = 0x15
DW_FORM_indirect = 0x16
DW_FORM_sec_offset = 0x17
DW_FORM_exprloc = 0x18
DW_FORM_flag_present = 0x19
DW_FORM_strx = 0x1A
DW_FORM_addrx = 0x1B
DW_FORM_ref_sup4 = 0x1C
DW_FORM_strp_sup = 0x1D
DW_FORM_data16 = 0x1E
DW_FORM_line_strp = 0x1F
DW_FORM_ref_sig8 = 0x20
DW_FORM_implicit_const = 0x21
DW_FORM_loclistx = 0x22
DW_FORM_rnglistx = 0x23
DW_FORM_ref_sup8 = 0x24
DW_FORM_strx1 = 0x25
DW_FORM_strx2 = 0x26
DW_FORM_strx3 = 0x27
DW_FORM_strx4 = 0x28
DW_FORM_addrx1 = 0x29
DW_FORM_addrx2 = 0x2A
DW_FORM_addrx3 = 0x2B
DW_FORM_addrx4 = 0x2C
DW_FORM_GNU_addr_index = 0x1F01
DW_FORM_GNU_str_index = 0x1F02
DW_FORM_GNU_ref_alt = 0x1F20
DW_FORM_GNU_strp_alt = 0x1F21

DW_UT_compile = 0x01
DW_UT_type = 0x02
DW_UT_partial = 0x03
DW_UT_skeleton = 0x04
DW_UT_split_compile = 0x05
DW_UT_split_type = 0x06

DW_INL_declared_not_inlined = 0x02

DW_LANG_C89 = 0x01
DW_LANG_C = 0x02
DW_LANG_C_plus_plus = 0x04
DW_LANG_C99 = 0x0C
DW_LANG_C_plus_plus_03 = 0x19
DW_LANG_C_plus_plus_11 = 0x1A
DW_LANG_C11 = 0x1D
DW_LANG_C_plus_plus_14 = 0x21
DW_LANG_C_plus_plus_17 = 0x2A
DW_LANG_C_plus_plus_20 = 0x2B
DW_LANG_C17 = 0x2C
DW_LANG_C_plus_plus_23 = 0x3A
DW_LANG_C_plus_plus_26 = 0x3B
DW_LANG_C23 = 0x3E
DW_LANG_Mips_Assembler = 0x8001

DW_LNS_copy = 0x01
DW_LNS_advance_pc = 0x02
DW_LNS_advance_line = 0x03
DW_LNS_set_file = 0x04
DW_LNS_set_column = 0x05
DW_LNS_negate_stmt = 0x06
DW_LNS_set_basic_block = 0x07
DW_LNS_const_add_pc = 0x08
DW_LNS_fixed_advance_pc = 0x09
DW_LNS_set_prologue_end = 0x0A
DW_LNS_set_epilogue_begin = 0x0B
DW_LNS_set_isa = 0x0C
DW_LNS_extended_op = 0x00
DW_LNE_end_sequence = 0x01
DW_LNE_set_address = 0x02
DW_LNE_set_discriminator = 0x04
DW_LNCT_path = 0x01
DW_LNCT_directory_index = 0x02

DW_RLE_end_of_list = 0x00
DW_RLE_base_addressx = 0x01
DW_RLE_startx_endx = 0x02
DW_RLE_startx_length = 0x03
DW_RLE_offset_pair = 0x04
DW_RLE_base_address = 0x05
DW_RLE_start_end = 0x06
DW_RLE_start_length = 0x07

DW_SECT_INFO = 0x01
DW_SECT_TYPES = 0x02
DW_SECT_ABBREV = 0x03
DW_SECT_STR_OFFSETS = 0x06
DW_SECT_RNGLISTS = 0x08

DWARF_2 = 2
DWARF_4 = 4
DWARF_5 = 5

DW_LENGTH_lo_reserved = 0xFFFFFFF0
DW_LENGTH_DWARF64 = 0xFFFFFFFF

# What an abbreviation is to the walk: bits of AbbrevTables.step, with a size above them.
HAS_CHILDREN = 1
CODE = 2
SKIP_SUBTREE = 4
SUBPROGRAM = 8
TYPE_SUBTREE = 16
FIXED = 32
STEP_SIZE_SHIFT = 8

# Skip operations: a kind in the low bits, a number of bytes above them.
OP_FIXED = 0
OP_LEB = 1
OP_STRING = 2
OP_BLOCK = 3
OP_BLOCK_LEB = 4
OP_INDIRECT = 5
OP_SIBLING = 6
OP_BAD = 15
OP_KIND = 15
OP_SIZE_SHIFT = 4

# Read operations: a number of bytes in the low bits, how they are read, and the attribute above them, 0 if it is of no
# use.
READ_SIZE = 31
READ_RELATIVE = 32
READ_VALUE = 64
READ_ATTRIBUTE_SHIFT = 8

# A reference to a string: the section in the top 4 bits, the source in the next 20 (see sources.py), the offset below.
# One to a DIE has no section. Source 0 is the one that is being read.
SECTION_SHIFT = 60
SOURCE_SHIFT = 40
IN_SUPPLEMENTARY = 0x0000010000000000
IN_INFO = 0x1000000000000000
IN_STR = 0x2000000000000000
IN_LINE_STR = 0x3000000000000000
IN_LINE = 0x4000000000000000
OFFSET_MASK = 0x000000FFFFFFFFFF

NOWHERE = 0xFFFFFFFFFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF
MASK32 = 0xFFFFFFFF
MASK16 = 0xFFFF

# The bit of a byte of a LEB128 number that announces another, and the sign in the last one.
LEB_MORE = 0x80
LEB_SIGN = 0x40

# What is known of functions and their calls.
FUNCTION = 1
TAIL_CALL = 2
ALL_CALLS = 4
ALL_TAIL_CALLS = 8

# Sequences of a line program whose addresses do not ascend (R34, unsorted rows; R35, rows out of order).
UNSORTED = 1
UNSORTED_BY_SET_ADDRESS = 2

MAX_ATTRIBUTES = 256
"""Attributes of an abbreviation; real ones have a few dozen. A DIE that takes no bytes for thousands takes time."""
MAX_DIE_DEPTH = 4096
"""DIEs nested deeper than this are corrupt data; real ones stay below a few hundred."""
MAX_CHAIN = 16
"""Longest chain of abstract_origin and specification that is followed (R14, chains of references)."""
MAX_CODE = 0x7FFFFFFF
"""Larger codes of abbreviations are unknown."""
TAG_BITS = 64
"""Tags that fit into a set of bits."""
NO_OPCODE = -1
LAST_OPCODE = 255
MAX_ADDRESS = 8
"""Bytes of the operand of DW_LNE_set_address."""
