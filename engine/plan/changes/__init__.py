"""What statements that change tables are planned with: the rules of a table, and stand-ins for rows that are known when they run.

Imports the plan alone.  Start at `catalog_objects.py`.
"""
