"""The statements that Fuseline takes, as a grammar of DuckDB's words and signs; `recognize` reads it.

sqlglot's parser is lenient: it reads over words that it expects, such as THEN or AS, and over signs that it does not.  A statement
is taken when both read it.  Rules are a parsing expression grammar: `'word'` is a word or a sign, `a / b` tries b after a,
`a? a* a+` are as in regular expressions, `!a` looks ahead.  Terms in capitals are kinds of tokens: NAME is a word that is not reserved or in quotes,
LABEL any word,
ALIAS a word that can be an alias without AS, FUNCTION a name whose arguments have commas between them.  Rules may take more than DuckDB does where the binder or sqlglot refuse
it; they may not take less of what DuckDB takes and Fuseline answers, which is also what stands in entries of WITH that nobody names.

What the grammar looks for, in words of users: the tables of names, and which of them an error shows first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .machine import ExpectedPart
from .parts import END, NUMBER, QUOTED, STRING, GrammarPart, GrammarRules

RULES = """
statement   <- query / create / insert / update / delete / merge / truncate / alter / drop / describe / summarize / expr

query       <- with? term tail
with        <- 'with' 'recursive'? cte (',' cte)* ','?
cte         <- NAME columns? ('using' 'key' columns)? 'as' ('not'? 'materialized')? '(' (query / about / insert / update / delete) ')'
columns     <- '(' NAME (',' NAME)* ','? ')'
tail        <- (set term)* order? limits?
set         <- ('union' / 'intersect' / 'except') ('all' / 'distinct')? ('by' 'name')?
term        <- '(' (query / about) ')' / select / from_first / values / 'table' dotted / pivot / unpivot
pivot       <- ('pivot' / 'pivot_wider') pivoted ('on' pivot_on (',' pivot_on)* ','?)? ('using' items)? grouped?
pivot_on    <- pivot_axis / expr
unpivot     <- ('unpivot' / 'pivot_longer') pivoted 'on' items ('into' 'name' NAME 'value' NAME (',' NAME)*)?
pivoted     <- ('lateral'? '(' inside ')' / STRING / dotted arguments?) table_name?
grouped     <- 'group' 'by' dotted (',' dotted)* ','?
values      <- 'values' row (',' row)* ','?
row         <- '(' cell (',' cell)* ','? ')'
cell        <- 'default' / expr

select      <- 'select' quantity? items from? clauses
from_first  <- from ('select' quantity? items)? clauses
quantity    <- 'all' / 'distinct' ('on' '(' exprs ')')?
items       <- item (',' item)* ','?
item        <- prefix? (star / starred / expr) label?
starred     <- '(' (star / starred / LABEL ('.' LABEL)* '.' '*' change*) ')'
prefix      <- NAME ':'
label       <- 'as' (LABEL / STRING) / ALIAS
star        <- '*' change*
change      <- 'not'? ('like' / 'ilike' / 'glob' / 'similar' 'to') unary
             / ('exclude' / 'except') ('(' dotted (',' dotted)* ','? ')' / dotted)
             / 'replace' ('(' replaced (',' replaced)* ','? ')' / replaced)
             / 'rename' ('(' renamed (',' renamed)* ','? ')' / renamed)
replaced    <- expr 'as' NAME
renamed     <- dotted 'as' NAME
clauses     <- where? group? having? windows? qualify? sample?
where       <- 'where' expr
group       <- 'group' 'by' ('all' / keys)
keys        <- key (',' key)* ','?
key         <- 'grouping' 'sets' '(' keys ')' / '(' ')' / expr
having      <- 'having' expr
windows     <- 'window' NAME 'as' window (',' NAME 'as' window)* ','?
qualify     <- 'qualify' expr
sample      <- 'using' 'sample' sampled
sampled     <- (NUMBER / '(' sampled ')') ('%' / 'percent' / 'rows')? ('(' NAME (',' NUMBER)? ')')? ('repeatable' '(' NUMBER ')')?
             / NAME '(' sampled ')' ('repeatable' '(' NUMBER ')')?
order       <- 'order' 'by' ('all' direction / sort_key (',' sort_key)* ','?)
sort_key    <- (star / starred / expr) direction
direction   <- ('asc' / 'desc')? ('nulls' ('first' / 'last'))?
limits      <- limit offset? / offset limit?
limit       <- 'limit' ('all' / expr ('%' / 'percent')?) / 'fetch' ('first' / 'next') (rows_only / unary rows_only)
rows_only   <- ('row' / 'rows') 'only'
offset      <- 'offset' expr ('row' / 'rows')?

from        <- 'from' source (',' source)* ','?
source      <- prefix? table join*
table       <- table_from named pivoting*
table_from  <- '(' inside ')' / unwrapped
unwrapped   <- 'lateral' '(' inside ')' / values / STRING / 'glob' arguments / 'lateral'? dotted (arguments ('with' 'ordinality')?)?
named       <- table_name? ('tablesample' sampled)?
pivoting    <- ('pivot' '(' items ('for' pivot_axis+) grouped? ')' / 'unpivot' (('include' / 'exclude') 'nulls')? '(' (NAME / columns) 'for' pivot_axis ')') table_name?
pivot_axis  <- (dotted / paren) 'in' ('(' pivot_value (',' pivot_value)* ','? ')' / dotted)
pivot_value <- expr ('as' STRING / 'as'? NAME)?
table_name  <- ('as' (NAME / STRING) / NAME) aliases?
aliases     <- '(' (NAME / STRING) (',' (NAME / STRING))* ','? ')'
inside      <- plain_query / about / '(' inside ')' (joined / set term tail / order limits? / limits)? / prefix table_from joined / unwrapped joined
joined      <- named (pivoting+ join* / join+)
plain_query <- with term tail / (select / from_first / values / 'table' dotted / pivot / unpivot) tail
join        <- ('cross' / 'positional' / 'natural' side?) 'join' table
             / 'asof'? side? 'join' table join* ('on' expr / 'using' columns)
side        <- ('left' / 'right' / 'full') 'outer'? / 'inner' / 'semi' / 'anti'

exprs       <- expr (',' expr)* ','?
expr        <- logical (('and' / 'or' / ':=' / '=>') logical)*
logical     <- 'not'* compared ('->' 'not'* compared)*
compared    <- matched (compare / distinct)* (tested behind*)?
compare     <- comparing ('any' paren / 'some' paren / 'all' paren / 'not'+ compared / matched)
distinct    <- 'is' 'not'? 'distinct' 'from' matched
tested      <- 'is' 'not'? ('null' / 'true' / 'false' / 'unknown') / 'isnull' / 'notnull' / 'not' 'null'
behind      <- tested / distinct / compare / sign unary / '::' type
matched     <- operated among* matching?
operated    <- unary (sign unary)*
among       <- 'not'? 'in' (paren / '(' ')' / operated) ('::' type)*
matching    <- 'not'? ('like' / 'ilike' / 'glob' / 'similar' 'to') operated escape?
             / ('~' / '!~') ('any' paren / 'some' paren / 'all' paren / operated escape?)
             / ('~*' / '!~*' / '!~~' / '!~~*' / '~~' / '~~*' / '~~~') operated escape?
             / 'not'? 'between' operated 'and' operated
escape      <- 'escape' operated
comparing   <- '=' / '==' / '<>' / '!=' / '<' / '>' / '<=' / '>='
sign        <- '+' / '-' / '*' / '/' / '//' / '%' / '^' / '**' / '&' / '|' / '<<' / '>>' / '||' / '^@' / '->>' / '&&' / '@>' / '<@'
unary       <- ('-' / '+' / '@' / '~')* atom suffix*
signed      <- ('-' / '+')* atom suffix*
suffix      <- '::' type / '[' (expr slice? / slice / '::' '-' expr) ']' / 'at' 'time' 'zone' signed / '.' (LABEL arguments? / '*' change*) / 'collate' LABEL
atom        <- NUMBER / '.' NUMBER / STRING / 'null' / 'true' / 'false' / paren / case / cast / exists / interval / part / map / called / parameter / '(' ')'
             / '[' (expr 'for' NAME (',' NAME)* 'in' (star / starred / expr) ('if' expr)? / listed (',' listed)* ','?)? ']' / 'array' (paren / '[' (listed (',' listed)* ','?)? ']')
listed      <- unpacked / expr
map         <- 'map' '{' (entry (',' entry)* ','?)? '}' / '{' (field (',' field)* ','?)? '}'
slice       <- ':' ('-' ':' expr? / expr)? (':' expr?)?
parameter   <- '?' / '$' (NUMBER / LABEL) / '#' NUMBER
field       <- (LABEL / expr) ':' expr
entry       <- expr ':' expr
paren       <- '(' (plain_query / about / exprs tail) ')'
case        <- 'case' expr? ('when' expr 'then' expr)+ ('else' expr)? 'end'
cast        <- ('cast' / 'try_cast') '(' expr 'as' type ')'
exists      <- 'exists' '(' query ')'
interval    <- 'interval' (unit STRING / (STRING / NUMBER / paren) unit?)
unit        <- 'year' / 'years' / 'month' / 'months' / 'day' / 'days' / 'hour' / 'hours' / 'minute' / 'minutes' / 'second' / 'seconds'
             / 'millisecond' / 'milliseconds' / 'microsecond' / 'microseconds' / 'week' / 'weeks' / 'quarter' / 'quarters'
             / 'decade' / 'decades' / 'century' / 'centuries' / 'millennium' / 'millennia'
part        <- 'position' '(' expr ')' / 'extract' '(' (LABEL / STRING) 'from' expr ')'
             / 'substring' '(' expr 'from' expr ('for' expr)? ')' / 'substring' '(' expr 'for' expr ')'
             / 'overlay' '(' expr 'placing' expr 'from' expr ('for' expr)? ')'
             / 'trim' '(' ('both' / 'leading' / 'trailing')? expr? 'from' exprs ')'
             / 'trim' '(' ('both' / 'leading' / 'trailing') exprs ')'
called      <- ('left' / 'right') arguments
             / 'extract' / 'position'
             / FUNCTION ('precision'? STRING / ('with' / 'without') 'time' 'zone' STRING / arguments (('with' / 'without') 'time' 'zone')? STRING? / '.' '*' change*)?
arguments   <- '(' (('distinct' / 'all')? argument (',' argument)* ','?)? order? (('ignore' / 'respect') 'nulls')? ')'
               ('within' 'group' '(' order ')')? ('filter' '(' 'where'? expr ')')? ('over' (NAME / window))?
argument    <- unpacked / star / starred / 'lambda' NAME (',' NAME)* ':' expr / expr
unpacked    <- '*' 'columns' '(' argument ')'
window      <- '(' windowed ')' / '(' NAME windowed ')'
windowed    <- ('partition' 'by' exprs)? order? (('rows' / 'range' / 'groups') frame excluded?)?
frame       <- 'between' limiting 'and' limiting / limiting
limiting    <- 'current' 'row' / compared ('preceding' / 'following')
excluded    <- 'exclude' ('current' 'row' / 'group' / 'ties' / 'no' 'others')

type        <- ('double' 'precision'? / ('character' / 'char' / 'bit') 'varying'? / NAME ('.' LABEL)*)
               ('(' parameters ')')? (('with' / 'without') 'time' 'zone')? ('array' dimension? / dimension dimension*)?
dimension   <- '[' NUMBER? ']'
parameters  <- type_value (',' type_value)* ','?
type_value  <- NUMBER / STRING / type type?

dotted      <- NAME ('.' LABEL)*
create      <- 'create' ('or' 'replace')? ('temp' / 'temporary')? (made_table / made_view / made_index)
unless      <- 'if' 'not' 'exists'
made_table  <- 'table' unless? dotted (columns? 'as' query ('with' 'no'? 'data')? / '(' column (',' column)* ','? ')')
column      <- limited / NAME type? bound*
limited     <- ('constraint' NAME)? (('primary' 'key' / 'unique') columns / 'check' paren / 'foreign' 'key' columns references)
references  <- 'references' dotted columns?
bound       <- ('constraint' NAME)? ('not' 'null' / 'null' / 'primary' 'key' / 'unique' / 'check' paren / 'default' expr / references
             / ('generated' 'always')? 'as' paren ('virtual' / 'stored')?)
made_view   <- 'view' unless? dotted columns? 'as' query
made_index  <- 'unique'? 'index' unless? NAME 'on' dotted ('using' NAME)? '(' sort_key (',' sort_key)* ')'
insert      <- with? 'insert' ('or' ('ignore' / 'replace'))? 'into' dotted ('as' NAME)? ('by' ('name' / 'position'))? columns? ('by' ('name' / 'position'))?
               (query / 'default' 'values') conflict? returning?
conflict    <- 'on' 'conflict' columns? 'do' ('nothing' / 'update' 'set' settings where?)
returning   <- 'returning' items
settings    <- setting (',' setting)* ','?
setting     <- NAME '=' cell / columns '=' '(' cell (',' cell)* ')'
update      <- with? 'update' dotted ('set' / 'as'? NAME 'set') settings from? where? returning?
delete      <- with? 'delete' 'from' dotted ('as'? NAME)? ('using' source (',' source)*)? where? returning?
merge       <- with? 'merge' 'into' dotted ('as'? NAME)? 'using' table ('on' expr / 'using' columns) merged+ returning?
merged      <- 'when' 'not'? 'matched' ('by' ('source' / 'target'))? ('and' expr)? 'then' merging
merging     <- 'delete' / 'do' 'nothing' / 'error' expr? / 'update' ('set' ('*' / settings) / 'by' ('name' / 'position'))?
             / 'insert' ('default' 'values' / 'by' ('name' / 'position') '*'? / '*' / columns? 'values' row)?
truncate    <- 'truncate' 'table'? dotted
alter       <- 'alter' ('table' / 'view') ('if' 'exists')? dotted altered
altered     <- 'rename' 'to' NAME / 'rename' 'column'? NAME 'to' NAME
             / 'add' (limited / 'column'? unless? NAME type bound*)
             / 'drop' 'column'? ('if' 'exists')? NAME ('cascade' / 'restrict')?
             / 'alter' 'column'? NAME (('set' 'data')? 'type' type ('using' expr)? / 'set' 'default' expr / 'drop' 'default' / ('set' / 'drop') 'not' 'null')
drop        <- 'drop' ('table' / 'view' / 'index') ('if' 'exists')? dotted (',' dotted)* ('cascade' / 'restrict')?
describe    <- ('describe' / 'desc') (query / dotted / STRING)
summarize   <- 'summarize' (query / dotted / STRING)
about       <- describe / summarize / 'show' ('all' 'tables' / dotted)
"""


MOST_SHOWN = 6
MOST_OTHERS = 3  # that go on with what stands before, where something has to follow
_EXPRESSION = ("an expression",)
_OPERATOR = ("an operator",)
_QUERY = ("a query",)
# Rules by what they describe; one that is empty is known by few, and says nothing of a mistake.
RULE_WORDS: dict[str, tuple[str, ...]] = {
    "query": _QUERY,
    "plain_query": _QUERY,
    "term": _QUERY,
    "cte": ("a name with AS and a query in parentheses",),
    "items": ("a column", "an expression", "*"),
    "item": ("a column", "an expression", "*"),
    "source": ("a table name", "a subquery in parentheses", "a file in quotes"),
    "table": ("a table name", "a subquery in parentheses", "a file in quotes"),
    "inside": ("a query", "a table name"),
    "exprs": _EXPRESSION,
    "expr": _EXPRESSION,
    "logical": _EXPRESSION,
    "compared": _EXPRESSION,
    **dict.fromkeys(("matched", "operated", "unary", "signed"), _EXPRESSION),
    "atom": _EXPRESSION,
    "argument": ("an argument",),
    "cell": _EXPRESSION,
    "keys": _EXPRESSION,
    "key": _EXPRESSION,
    "sort_key": _EXPRESSION,
    "paren": ("an expression in parentheses",),
    "row": ("values in parentheses",),
    "type": ("a type",),
    "dotted": ("a name",),
    "aliases": ("names of columns in parentheses",),
    "columns": ("names of columns in parentheses",),
    "column": ("a column with its type",),
    "window": ("a window in parentheses",),
    "limiting": ("UNBOUNDED PRECEDING", "CURRENT ROW", "a number with PRECEDING or FOLLOWING"),
    "arguments": ("arguments in parentheses",),
    **dict.fromkeys(
        ("sign", "compare", "distinct", "tested", "behind", "among", "matching"), _OPERATOR
    ),
    "set": ("UNION",),
    "join": ("JOIN",),
    "label": ("an alias",),
    "table_name": ("an alias",),
    "direction": ("ASC", "DESC"),
    "bound": (),
    "change": (),
    "prefix": (),
    "quantity": (),
    "qualify": (),
    "sample": (),
    "sampled": (),
    "suffix": (),
    "dimension": (),
    "unless": (),
    "windows": (),
}
_KEYS = {
    END: "the end of the statement",
    NUMBER: "a number",
    STRING: "a text in single quotes",
    "group": "GROUP BY",
    "order": "ORDER BY",
    "partition": "PARTITION BY",
}
# What is mostly forgotten comes first, and what could stand nearly everywhere last.
_FIRST = (")", "]", "END", "THEN", "a table name", "a subquery in parentheses", "a column", "an expression", "FROM", ",", "AND", "OR", "WHERE", "JOIN")  # fmt: skip
_LAST = ("an operator", "an alias", "the end of the statement")
_RARE = frozenset(["tablesample", "escape", "with", "ignore", "respect", "at", "collate", "isnull", "notnull", "nulls", "lateral", "?", "$", "%", "percent", "->", ":=", "=>", "::"])  # fmt: skip
# What may follow each name is no news.
_TACIT = frozenset(["called", "dotted", "type"])


def sentence(wanted: Sequence[ExpectedPart], rules: GrammarRules) -> str:
    """Return what could have stood at a place, the most useful first, or nothing where too little is known."""
    needed: dict[str, None] = {}
    others: dict[str, None] = {}
    for each in wanted:
        if not each.needed and each.within in _TACIT:
            continue
        (needed if each.needed else others).update(dict.fromkeys(_words(each, rules)))
    if "an expression" in needed:  # which begins in many ways
        others = {}
        for word in ("NOT", "ANY", "SOME", "ALL"):
            needed.pop(word, None)
    ends = needed.pop(_KEYS[END], _KEYS) is None
    most = MOST_OTHERS if needed else MOST_SHOWN
    found = _ranked(needed)[:MOST_SHOWN]
    found += _ranked({word: None for word in others if word not in needed})[:most]
    if ends and not needed:
        found.append(_KEYS[END])
    return " or ".join(filter(None, [", ".join(found[:-1]), *found[-1:]]))


def _ranked(words: dict[str, None]) -> list[str]:
    ranks = {word: rank for rank, word in enumerate(_FIRST)} | dict.fromkeys(_LAST, 1000)
    return sorted(
        (_shown(word) for word in words), key=lambda word: ranks.get(word.strip('"'), 500)
    )


def _shown(word: str) -> str:
    return word if word == "*" or any(c.isalpha() for c in word) else f'"{word}"'


def _words(wanted: ExpectedPart, rules: GrammarRules) -> Iterator[str]:
    """Yield the words of the outermost rule that would begin there, or of the part itself."""
    for rule in wanted.rules:
        if rule in RULE_WORDS:
            yield from RULE_WORDS[rule]
            return
    yield from _of_part(wanted.part, rules)


def _of_part(part: GrammarPart, rules: GrammarRules) -> Iterator[str]:
    match part.kind:
        case "keys":
            yield from _of_keys(part)
        case "rule" if part.rule in RULE_WORDS:
            yield from RULE_WORDS[part.rule]
        case "rule":
            yield from _of_part(rules.rules[part.rule], rules)
        case "row":
            for each in part.parts:
                yield from _of_part(each, rules)
                if not rules.first(each)[1]:
                    return
        case _:
            for each in part.parts:
                yield from _of_part(each, rules)


def _of_keys(part: GrammarPart) -> Iterator[str]:
    if QUOTED in part.keys:
        yield "a name"
    elif part.keys == {STRING}:
        yield _KEYS[STRING]
    else:
        for key in sorted(part.keys - _RARE):
            yield _KEYS.get(key, key.upper())
