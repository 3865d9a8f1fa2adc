"""The doors to other libraries: what users hand in (`ingest`, `device_frames`) and take out (`device_frames`), and Fuseline behind
their interfaces (`ibis_backend`, `narwhals_plugin`, `sqlalchemy_dialect`).

May import everything below; each library is imported when an object of it is met, never before.  Start at `ingest.py`.
"""
