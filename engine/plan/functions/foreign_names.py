"""What other databases call functions that are written otherwise here: the remedy in the error for such a name."""

from __future__ import annotations

INSTEAD = {
    **dict.fromkeys(("nvl", "zeroifnull"), "coalesce(x, ...)"),
    "nvl2": "if(x is not null, ...)",
    "iif": "if(condition, ...)",
    **dict.fromkeys(("getdate", "sysdate", "systimestamp"), "now()"),
    **dict.fromkeys(("to_char", "date_format", "format_date"), "strftime(x, '%Y-%m-%d')"),
    **dict.fromkeys(("to_date", "str_to_date", "date_parse"), "strptime(text, '%Y-%m-%d')"),
    **dict.fromkeys(("dateadd", "adddate", "add_months"), "x + interval 1 day"),
    **dict.fromkeys(("subdate", "months_sub"), "x - interval 1 day"),
    **dict.fromkeys(("timestampdiff", "months_between"), "date_diff('month', start, end)"),
    "datename": "dayname(x) or monthname(x)",
    "from_unixtime": "to_timestamp(seconds)",
    "unix_timestamp": "epoch(x)",
    **dict.fromkeys(("convert", "to_number"), "cast(x as type)"),
    "safe_cast": "try_cast(x as type)",
    "safe_divide": "a / nullif(b, 0)",
    **dict.fromkeys(("charindex", "locate"), "instr(text, part)"),
    "substring_index": "split_part(text, separator, n)",
    "mid": "substring(text, from, count)",
    **dict.fromkeys(("regexp_like", "regexp_contains", "rlike"), "regexp_matches(text, pattern)"),
    "regexp_substr": "regexp_extract(text, pattern)",
    **dict.fromkeys(("rand", "dbms_random"), "random()"),
    "newid": "uuid()",
    **dict.fromkeys(("collect_list", "collect_set"), "list(x) or list(distinct x)"),
    "explode": "unnest(list)",
    "sequence": "generate_series(start, stop)",
    "approx_distinct": "approx_count_distinct(x)",
    **dict.fromkeys(("percentile_approx", "approx_percentile"), "approx_quantile(x, 0.5)"),
    "parse_json": "json(text)",
}
