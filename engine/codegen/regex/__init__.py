"""Regular expressions as automata over bytes of UTF-8, which a GPU's kernel walks: RE2's answers without its library, which the CPU has.

Imports the standard library and NumPy.  Start at `automata.py`; a pattern is read by `read_pattern.py` and becomes instructions in
`search_program.py`, and `replacements.py` says what takes the place of a match.
"""
