"""Plans that serve other constants than those they were planned with.

    text ──literals, values of parameters──> SlotLiteral ──binding, rules──> a plan that has them, and `PlanGuards`
    another text of the shape ──its values──> do all guards hold? ──> `PlanModel` makes the plan with them

    a pipeline with slots ──code generation──> kernels with slots in their arguments, and guards ──> `Variants` makes them anew too

A literal of a text is a `SlotLiteral`, whose value nobody reads unseen: `value` leaves the guard that another text has the same one, and
`guards.decided` and `guards.computed` leave narrower ones.  So a rule that knows nothing of all this costs hits, and never an answer.

Imports plan alone.  Start at `guards.py`.
"""
