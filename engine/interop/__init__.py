"""The doors to other libraries: what users hand in (`ingest`, `device`) and take out (`device`).

May import everything below; each library is imported when an object of it is met, never before.
"""
