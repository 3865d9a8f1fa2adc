"""CSV files, and options to read them with, that a reader has to decide about as DuckDB does."""

from __future__ import annotations

import csv
import io
import random

# Content, and options in SQL
CASES: list[tuple[str, str]] = [
    ("a,b\n1,x\n2,y\n", ""),
    ("1,x\n2,y\n", ""),
    ("x,y\na,b\n", ""),
    ("a;b\n1;2,5\n", ""),
    ("a|b\n1|2\n", ""),
    ("a\tb\n1\t2\n", ""),
    ("a\n1\n2\n", ""),
    ("", ""),
    ("a,b\n", ""),
    ("\n", ""),
    ("a,b\n1,2\n3\n", ""),
    ("a,b\n1,2\n3,4,5\n", ""),
    ("a,b\n1,2\n\n3,4\n", ""),
    ("a\n1\n\n3\n", ""),
    ("a,b\r\n1,2\r\n", ""),
    ("\ufeffa,b\n1,2\n", ""),
    ('a,b\n"1","x,y"\n"2","q""z"\n', ""),
    ('a,b\n1,""\n2,\n', ""),
    ("a,a,A\n1,2,3\n", ""),
    ("a,,c\n1,2,3\n", ""),
    (
        "d,t,ts,b,f,i,tz\n2020-01-01,10:11:12,2020-01-01 10:00:00,true,1.5,12,2020-01-01 10:00:00+02\n",
        "",
    ),
    ("d\n01/02/2020\n13/02/2020\n", ""),
    ("d\n01/02/2020\n02/03/2020\n", ""),
    ("d\n2020/01/02\n", ""),
    ("d\n01-02-2020 10:00:00\n", ""),
    ("i\n99999999999999999999\n", ""),
    ("i\n1\n2.5\n", ""),
    ("i\n1\nx\n", ""),
    ("i,j\n 1 , 2 \n", ""),
    ("b\nTrue\nFALSE\n", ""),
    ("b\nt\nf\n", ""),
    ("paid,b\nyes,NO\nno,f\n,Yes\n", ""),
    ("yes,b\nno,1\nmaybe,0\n", ""),
    ("b\n1\n0\n", ""),
    ("x\n007\n", ""),
    ("x\n1e5\n", ""),
    ("x\n1_000\n", ""),
    ("x\n+5\n", ""),
    ("x\ninf\nnan\n", ""),
    ("x,y,z\n1.5,1,nan\n-nan,inf,1\nInfinity,-infinity,inf\n nan,2,NaN\n", ""),
    (
        "a,b,c,d\ninf,2020-01-01,2020-01-01 10:00:00,inf\n2020-01-01,-infinity,infinity,1\nepoch,epoch,inf,2\n",
        "",
    ),
    ("m,n\n2020-01-01 10:00:00,epoch\n2020-01-01 10:00:00+02,epoch\n", ""),
    ("x\n.5\n5.\n", ""),
    ("x\n-\n", ""),
    ("i,j\n1,2\nx,3\n", "columns={'i':'INT','j':'INT'}"),
    ("i,j\n1,2\nx,3\n", "types={'i':'INT'}"),
    ("i,j\n1,2\nx,3\n", "types=['VARCHAR','DOUBLE']"),
    ("i,j\n1,2\nx,3\n", "names=['p']"),
    ("1,2\nx,3\n", "names=['p','q','r']"),
    ("i,j\n1,2\nx,3\n", "types={'i':'INT'}, ignore_errors=true"),
    ("# c\n# d\ni,j\n1,2\n", ""),
    ("junk\nmore junk\ni,j\n1,2\n3,4\n", ""),
    ("i,j\n1,2\n", "foo=1"),
    ("a,b\n1,2", "header=false"),
    ("a,b\n1,2", "all_varchar=true"),
    ("a,b\n1,NA\n", "nullstr='NA'"),
    ("a,b\n1,NA\n-,3", "nullstr=['NA','-']"),
    ("a;b\n1,5;2\n", "decimal_separator=','"),
    ("a,b\n1,2\n3,4\n", "skip=1"),
    ("a,b\n1,2\n3,4\n", "auto_detect=false"),
    ("a,b\n1,2\n3,4\n", "auto_detect=false, columns={'x':'INT','y':'INT'}"),
    ("a,b\n1,2\n3,4\n", "columns={'x':'INT','y':'INT'}"),
    ("a,b\n1,2\n3,4\n", "columns={'x':'INT'}"),
    ("a,b\n1,'x,y'\n2,'z'\n", ""),
    ('a,b\n"x\ny",2\n', ""),
    ('a,b\n1,"x\n', ""),
    ('a,b\n1,x"y\n', ""),
    ('a,b\n1,"x"y\n', ""),
    ("a,b\n1,2\n", "filename=true"),
    ("a,b\n1,2\n", "dateformat='%d'"),
    ("1\n2\n3\n", ""),
    ("a\n", ""),
    ("x", ""),
    ("1,2,3", ""),
    (",,\n1,2,3\n", ""),
    ("a,1\n2,3\n", ""),
    ("1,a\n2,3\n", ""),
    ("2020-01-01,x\n2020-01-02,y\n", ""),
    ("i\n1\n2.5\n", "types={'i':'INT'}"),
    ("i\n1\n1e2\n", "types={'i':'INT'}"),
    ("a,b\n1,'x'\n", ""),
    ("a,b\n1,\"x\"\n2,'y'\n", ""),
    ("d\n01/02/03\n", ""),
    ("d\n13/02/03\n", ""),
    ("d\n2020.01.02\n", ""),
    ("d\n1.2.2020\n", ""),
    ("d\n20200102\n", ""),
    ("d\n2020-1-2\n", ""),
    ("d\n2020-01-02 10:00\n", ""),
    ("d\n2020-01-02T10:00:00\n", ""),
    ("d\n2020-01-02 10:00:00.123456\n", ""),
    ("d\n10:00\n", ""),
    ("d\n10:00:00.5\n", ""),
    ("d\n01/02/2020 11:00:00 PM\n", ""),
    ("d\n13/02/2020 11:00:00\n", ""),
    ("d\n2020-01-02\n2020-01-02 10:00:00\n", ""),
    ("d\n1\n2020-01-02\n", ""),
    ("d\ntrue\n1\n", ""),
    ("x\n00.5\n", ""),
    ("x\n-0\n", ""),
    ("x\n1.\n", ""),
    ("x\n 5 \n", ""),
    ("x\n1,5\n", ""),
    ("x\n5 \n", ""),
    ("x\n-5\n", ""),
    ("x\n- 5\n", ""),
    ("x\n1E+5\n", ""),
    ("x\n0\n", ""),
    ("x\n00\n", ""),
    ("x\n0x1A\n", ""),
    ("x\n1.5e400\n", ""),
    ("x\n9223372036854775808\n", ""),
    ("x\n1e2\n5\n", ""),
    ("a,b\n,\n", ""),
    ("a,b\n,1\n", ""),
    ("a\n\n", ""),
    ("a,b\n1,2\n,\n", ""),
    ("a b,c-d\n1,2\n", ""),
    (" a , b \n1,2\n", ""),
    ("a,b\n x , y \n", ""),
    ("a,b\nNULL,null\n", ""),
    ("a,b\n1,2\n3,4\n", "skip=1, header=true"),
    ("a,b\n1,2\n", "delim=';'"),
    ("a;b\n1;2\n", "sep=';'"),
    ("a,b\n1,2\n", "columns={'a':'INT','c':'INT'}"),
    ("a,b\n1,2\n3\n4,5\n", "ignore_errors=true"),
    ("a,b\n1,2\n3\n4,5\n", "ignore_errors=true, columns={'a':'INT','b':'INT'}"),
    ("a,b\n1,2\n3\n4,5\n", "delim=','"),
    ("a,b\n1,2\n3,4,5\n", "delim=','"),
    ("a,b\n1,2\n1,2\n1,2\n1,2,3\n", ""),
    ("a,b,\n1,2,\n", ""),
    ("a,b\n1,2,3\n4,5,6\n", ""),
    ("a,b,c\n1,2\n4,5\n", ""),
    ("x;y,z\n1;2\n", ""),
    ("a\tb,c\n1\t2,3\n", ""),
    ("a:b\n1:2\n", ""),
    ("a,b\r1,2\r", ""),
    ('a,b\n1,"x""y"\n', ""),
    ('a,b\n1,"x\\"y"\n', ""),
    ('a,b\n"1",2\n', ""),
    ("a,b\n1,2\n-- c\n", ""),
    ('id,name\n1,"multi\nline"\n2,z\n', ""),
    ('a,"b,c"\n1,2\n', ""),
    ('"a","b"\n"1","2"\n', ""),
    ("'a','b'\n'1','2'\n", ""),
    ('a,b\n1,"x\ny"\n1,"x\ny"\n1,"x\ny"\n\n\nz,2\n', "types={'a':'INT'}"),
    ("a,b\n1,2\n3,4\n5\n", "columns={'a':'INT','b':'INT'}"),
]
# What is no header: the first row, with the rows below it
_FIRST = ("1.5", "1e5", " 1", "1_000", "+1", "-1", "0x1F", "1.", "true", "1", "t", "inf", "2020-01-01", "2020/01/01", "12:30:00", "x", "")  # fmt: skip
_BELOW = ("2,b", "2.5,b", "true,b", "2021-01-01,b", "2021-01-01 10:00:00,b", "13:30:00,b", "x,", ",b", ",", "")  # fmt: skip
HEADERS: list[tuple[str, str]] = [
    (f"{value},{name}\n{rows}\n" if rows else f"{value},{name}\n", options)
    for value in _FIRST
    for rows in _BELOW
    for name, options in (("a", ""), ("a", "all_varchar=true"), ("", ""))
]
_TOLD = (
    "columns={'p':'VARCHAR','q':'VARCHAR'}", "names=['p']", "nullstr='x'", "header=false", "skip=1", "types=['VARCHAR','VARCHAR']",
)  # fmt: skip
HEADERS += [
    (content, f"{told}{more}")
    for content in (",\n1,2\n", "1,x\n,y\n", "2,x\n3,y\n", "a,b\nc,d\n", "a,\n1,2\n")
    for told in _TOLD
    for more in ("", ", all_varchar=true")
]


def generated(seed: int) -> tuple[str, str]:
    """Return a file of a dialect that nobody chose: its delimiter, quotes, header, NULLs and types by chance."""
    chance = random.Random(seed)
    delim, quote = chance.choice(",;|\t"), chance.choice('""\'')
    null = chance.choice(["", "", "NA", "null"])
    makers = {
        "whole": lambda: str(chance.randint(-(10**chance.randint(1, 17)), 10**9)),
        "number": lambda: f"{chance.uniform(-1e6, 1e6):.{chance.randint(1, 6)}f}",
        "text": lambda: chance.choice(["x", "Ünï", f"a{delim}b", f"say {quote}hi{quote}", "two\nlines", "word"]),
        "day": lambda: f"{chance.randint(1900, 2100)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
        "moment": lambda: f"2020-01-{chance.randint(1, 28):02} {chance.randint(0, 23):02}:00:{chance.randint(0, 59):02}",
        "truth": lambda: chance.choice(["true", "false"]),
        "clock": lambda: f"{chance.randint(0, 23):02}:{chance.randint(0, 59):02}:{chance.randint(0, 59):02}",
    }  # fmt: skip
    kinds = [chance.choice(list(makers)) for _ in range(chance.randint(2, 6))]
    missing = chance.choice([0, 0.1, 0.5])
    rows = [
        [null if chance.random() < missing else makers[kind]() for kind in kinds]
        for _ in range(chance.randint(1, 40))
    ]
    header = chance.random() < 0.7
    out = io.StringIO()
    quoting = chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    end = chance.choice(["\n", "\r\n"])
    writer = csv.writer(out, delimiter=delim, quotechar=quote, quoting=quoting, lineterminator=end)
    if header:
        writer.writerow([f"name {i}" for i in range(len(kinds))])
    writer.writerows(rows)
    options = [f"header = {str(header).lower()}"]
    options += [f"nullstr = '{null}'"] if null else []
    if chance.random() < 0.5 or quote == "'":
        shown = quote.replace("'", "''")
        options += [f"delim = '{delim}'", f"quote = '{shown}'", f"escape = '{shown}'"]
    return out.getvalue(), ", ".join(options)
