from symbolize.core.leb128 cimport put_sleb, put_uleb
