"""The device and its memory, and the ways between host and device: copies of many small buffers in one, pinned memory, results.

Imports no operator.  Start at `device.py`; `to_host.py` is how answers leave, `host_table.py` what they are then.
"""
