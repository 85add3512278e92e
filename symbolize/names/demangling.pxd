from symbolize.names.demangler cimport MAX_NAME
from symbolize.names.itanium_demangler cimport CppDemangler
from symbolize.names.rust cimport RustDemangler, is_legacy
