"""Names as statements and types write them, and names of columns of which each is another."""

from __future__ import annotations

import itertools
import re
import unicodedata


def several(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# The keywords of DuckDB's grammar, all categories (duckdb_keywords()): a name that is one is quoted.
KEYWORDS = several("""
    abort absolute access action add admin after aggregate all also alter always analyse
    analyze and anti any approx array as asc asof assertion assignment asymmetric at attach
    attribute authorization backward before begin between bigint binary bit boolean both by
    cache call called cascade cascaded case cast catalog centuries century chain char
    character characteristics check checkpoint class close cluster coalesce collate collation
    column columns comment comments commit committed compression concurrently configuration
    conflict connect connection constraint constraints content continue conversion copy cost
    create cross csv cube current cursor cycle data database day days deallocate dec decade
    decades decimal declare default defaults deferrable deferred definer delete delimiter
    delimiters depends desc describe destroy detach dictionary disable discard disconnect
    distance distinct do document domain double drop each else enable encoding encrypted end
    enum error escape event exact except exclude excluding exclusive execute exists explain
    export export_state extension extensions external extract false family fetch filter first
    float following for force foreign forward freeze from full function functions generated
    glob global grant granted group grouping grouping_id groups handler having header hold
    hour hours identity if ignore ilike immediate immutable implicit import in include
    including increment index indexes inherit inherits initially inline inner inout input
    insensitive insert install instead int integer intersect interval into invoker is isnull
    isolation join json key label lambda language large last lateral leading leakproof left
    level like limit listen load local location lock locked logged macro map mapping match
    matched materialized maxvalue merge method microsecond microseconds millennia millennium
    millisecond milliseconds minute minutes minvalue mode month months move name names
    national natural nchar nearest new next no none not nothing notify notnull nowait null
    nullif nulls numeric object of off offset oids old on only operator option options or
    order ordinality others out outer over overlaps overlay overriding owned owner parallel
    parser partial partition partitioned passing password percent persistent pivot
    pivot_longer pivot_wider placing plans policy position positional pragma preceding
    precision prepare prepared preserve primary prior privileges procedural procedure program
    publication qualify quarter quarters quote range read real reassign recheck recursive ref
    references referencing refresh register reindex relative release rename repeatable replace
    replica reset resource resources respect restart restrict returning returns revoke right
    role rollback rollup row rows rule sample savepoint schema schemas scope scroll search
    second seconds secret secure security select semi sequence sequences serializable server
    session set setof sets share show similar similarity simple skip smallint snapshot some
    sorted source sql stable standalone start statement statistics stdin stdout storage stored
    strict strip struct subscription substring summarize symmetric sysid system table tables
    tablesample tablespace target temp template temporary text then ties time timestamp to
    trailing transaction transform treat trigger trim true truncate trusted try_cast tuple
    type types unbounded uncommitted unencrypted union unique unknown unlisten unlogged unpack
    unpivot until update use user using vacuum valid validate validator value values varchar
    variable variadic varying verbose version view views virtual volatile week weeks when
    where whitespace window with within without work wrapper write xml xmlattributes xmlconcat
    xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
    year years yes zone
    """)
# Those that may be names of columns as they are
_NAMES_OF_COLUMNS = several("""
    between bigint bit boolean char character coalesce dec decimal exists extract float
    grouping grouping_id inout int integer interval national nchar none nullif numeric out
    overlay position precision real row setof smallint substring time timestamp treat trim
    values varchar xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces
    xmlparse xmlpi xmlroot xmlserialize xmltable
    """)
# Those that may be names of functions and types; the ones of both kinds are names of columns too
_NAMES_OF_BOTH = several("columns generated map struct try_cast tuple")
_NAMES_OF_TYPES = _NAMES_OF_BOTH | several("""
    anti asof at authorization binary by collation concurrently cross freeze full glob
    ilike inner is isnull join left like natural notnull outer overlaps positional right
    semi similar tablesample unpack verbose
    """)
# Those that are no names without quotes
_NO_NAMES = several("""
    all analyse analyze and any array as asc asymmetric both case cast check collate
    column constraint create default deferrable desc describe distinct do else end
    except false fetch for foreign from group having in initially intersect into lambda
    lateral leading limit not null offset on only or order pivot pivot_longer
    pivot_wider placing primary qualify references returning select show some summarize
    symmetric table then to trailing true union unique unpivot using variadic when where
    window with
    """)
# What cannot be the name of a table or column without quotes, or an alias
RESERVED = _NO_NAMES | (_NAMES_OF_TYPES - _NAMES_OF_BOTH)
KEYWORD_CATEGORIES = {
    "column_name": _NAMES_OF_COLUMNS | _NAMES_OF_BOTH,
    "reserved": _NO_NAMES,
    "type_function": _NAMES_OF_TYPES,
    "unreserved": KEYWORDS - _NAMES_OF_COLUMNS - _NAMES_OF_TYPES - _NO_NAMES,
}
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)


def quoted_name(name: str) -> str:
    """Return a name in quotes, which any name may stand in."""
    return '"' + name.replace('"', '""') + '"'


def quoted_path(*names: str | None) -> str:
    """Return a name in quotes behind those of its schema and database, as far as they are given."""
    return ".".join(quoted_name(name) for name in names if name)


def quoted_field(name: str) -> str:
    """Return the name of a field as types show it."""
    plain = _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS
    return name if plain else quoted_name(name)


def normalized_name(name: str) -> str:
    """Return a name that needs no quotes: in small letters without accents, `_` for blanks and before digits and keywords.

    >>> [normalized_name(name) for name in ("À la carte", "1st", "select", "%")]
    ['a_la_carte', '_1st', '_select', '_']
    """
    plain = unicodedata.normalize("NFKD", name).lower()
    kept = re.sub(r"[^a-z0-9_\s]", "", plain)
    made = "_".join(kept.split())
    is_word = made in KEYWORDS and made not in _NAMES_OF_COLUMNS
    return f"_{made}" if is_word or not made or made[0].isdigit() else made


def distinct_names(names: list[str]) -> list[str]:
    """Return the names with `_1`, `_2` ... behind those that repeat an earlier one but for case, as DuckDB does."""
    made: list[str] = []
    taken: set[str] = set()
    for name in names:
        free = name
        for i in itertools.count(1):
            if free.lower() not in taken:
                break
            free = f"{name}_{i}"
        taken.add(free.lower())
        made.append(free)
    return made
