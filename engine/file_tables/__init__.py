"""Files that are not Parquet, as tables: their columns are found out from a sample, and their rows are kept as Parquet from the first query on.

What scans Parquet - statistics, row groups, the column cache, memory limits, spilling - serves each format so.  A format is a
`FileSource`: it tells the columns, and gives the rows as Arrow tables.  May import operators, whose casts convert texts.
Start at `file_source.py` and `converted_table.py`.
"""
