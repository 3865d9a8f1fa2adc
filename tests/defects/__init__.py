"""Defects found from outside, each with the query or the file that showed it, by the topic of its fix.

`test_each_defect.py` has each line of the report with its tests.  How many neighbours those and others try, class by class:

    python -m tests.defects.neighbours
"""
