"""Machine code on disk: what is loaded from there carries a proof that it was made by this user.

A file says nothing that is believed without that proof: a code over all of its bytes with a secret of the user that lies
elsewhere.  Sources lie beside machine code for people to read; nothing reads them back.  Imports settings and `storage.spill_folders` alone.  Start at `folder.py`.
"""
