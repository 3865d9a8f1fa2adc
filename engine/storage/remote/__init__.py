"""Files of object stores and web servers: looked at, listed, and read by ranges of bytes.

`urls` says which path is remote and what it means, `remote_access` which store answers for it with which credentials, and `remote_files` what a
file was when it was looked at.  obstore is imported when the first one is opened.  Imports `plan` and file identities.  Start at
`remote_access.py`.
"""
