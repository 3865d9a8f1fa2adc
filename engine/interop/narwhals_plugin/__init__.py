"""The Narwhals backend: `narwhals.from_native(frame)` takes a Frame, and so does what is written for Narwhals, such as Altair.

`plugin` is what Narwhals loads, by the entry point `narwhals.plugins`; `lazy_frame` and `lazy_expression` are its lazy frame and
its expressions, over Frames and Expressions.  How SQL says `cum_sum`, `rank` or `over` comes from `narwhals._sql`, the base that
Narwhals has for its own SQL backends.  It is private, so the extra pins the minor version and `plugin` refuses any other: one's
own copy would be twice the lines here, and would have to follow each change of the protocols all the same.

May import what `interop` may, and Narwhals.  Start at `lazy_frame.py`.
"""
