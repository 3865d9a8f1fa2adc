"""DuckDB's grammar, as far as Fuseline takes it: the second reading of each statement, beside sqlglot's.

sqlglot's parser is lenient: it reads over words that it expects, such as THEN or AS, and over signs that it does not expect.
`rules.py` says what a statement is, `parts.py` reads the rules, `machine.py` runs them over tokens, `recognize.py` turns tokens into their keys.
For a text that they do not take, `words.py` says what could have stood there, and `mistakes.py` what was probably meant.

Imports `parsing.keywords` alone.  Start at `rules.py`.
"""
