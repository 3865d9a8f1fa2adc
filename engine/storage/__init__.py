"""Tables and columns: what files and memory hold, what is known about it, and the narrow forms that kernels read.

May import plan and errors; pyarrow everywhere, pylibcudf in the `device_*` files alone.  Start reading at `tables/parquet.py` for what
a scan reads, at `columns/encodings.py` for what kernels do.
"""
