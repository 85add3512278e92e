from symbolize.cursor cimport Cursor
