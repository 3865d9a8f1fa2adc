"""How far a query is: what operators count, what is shown of it, and the bar in terminals and notebooks.

`run_progress` imports `plan` and `errors`, and `progress_bar` that and rich, once a bar is drawn.  Start at `run_progress.py`.
"""
