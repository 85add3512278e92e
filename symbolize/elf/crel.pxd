from symbolize.core.cursor cimport Cursor
