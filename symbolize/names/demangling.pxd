from symbolize.names.itanium_text cimport Reader
