"""What may be asked of TPC-H's columns: which are numbers, days and codes, their usual values, and how tables join."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Number:
    """A column between two values, of so many decimal places."""

    name: str
    low: float
    high: float
    places: int = 2


NUMBERS: dict[str, tuple[Number, ...]] = {
    "lineitem": (
        Number("l_quantity", 1, 50, 0),
        Number("l_extendedprice", 900, 105_000),
        Number("l_discount", 0, 0.1),
        Number("l_tax", 0, 0.08),
        Number("l_linenumber", 1, 7, 0),
    ),
    "orders": (Number("o_totalprice", 900, 500_000),),
    "customer": (Number("c_acctbal", -999, 9_999),),
    "part": (Number("p_retailprice", 900, 2_100), Number("p_size", 1, 50, 0)),
    "partsupp": (Number("ps_supplycost", 1, 1_000), Number("ps_availqty", 1, 9_999, 0)),
    "supplier": (Number("s_acctbal", -999, 9_999),),
    "nation": (Number("n_nationkey", 0, 24, 0),),
    "region": (),
}
DAYS: dict[str, tuple[str, ...]] = {
    "lineitem": ("l_shipdate", "l_commitdate", "l_receiptdate"),
    "orders": ("o_orderdate",),
}
CODES: dict[str, dict[str, tuple[str, ...]]] = {
    "lineitem": {
        "l_returnflag": ("A", "N", "R"),
        "l_linestatus": ("F", "O"),
        "l_shipmode": ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"),
        "l_shipinstruct": ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"),
    },
    "orders": {
        "o_orderstatus": ("F", "O", "P"),
        "o_orderpriority": ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"),
    },
    "customer": {"c_mktsegment": ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")},
    "part": {
        "p_mfgr": tuple(f"Manufacturer#{n}" for n in range(1, 6)),
        "p_brand": tuple(f"Brand#{n}{m}" for n in range(1, 6) for m in range(1, 6)),
        "p_container": ("JUMBO PKG", "LG CASE", "MED BAG", "SM BOX", "WRAP CAN"),
        "p_type": ("ECONOMY ANODIZED STEEL", "PROMO BRUSHED TIN", "STANDARD PLATED BRASS"),
    },
    "nation": {"n_name": ("BRAZIL", "CANADA", "CHINA", "FRANCE", "GERMANY", "INDIA", "KENYA")},
    "region": {"r_name": ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")},
}
TEXTS: dict[str, dict[str, tuple[str, ...]]] = {
    "lineitem": {"l_comment": ("%carefully%", "%final%deposits%", "quick%", "%ely")},
    "orders": {"o_comment": ("%special%requests%", "%pending%"), "o_clerk": ("Clerk#00000000%", "%7")},
    "customer": {"c_comment": ("%express%", "%accounts%"), "c_phone": ("1%", "%-9__-%")},
    "part": {"p_name": ("%green%", "forest%", "%rose"), "p_type": ("PROMO%", "%BRASS", "%PLATED%")},
    "partsupp": {"ps_comment": ("%regular%",)},
    "supplier": {"s_comment": ("%Customer%Complaints%", "%bold%"), "s_name": ("%1",)},
}  # fmt: skip
KEYS = {  # of many values
    "lineitem": ("l_orderkey", "l_partkey", "l_suppkey"),
    "orders": ("o_orderkey", "o_custkey"),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "supplier": ("s_suppkey",),
}
JOINS = {  # a table, what it refers to, and by which columns
    "lineitem": {
        "orders": "l_orderkey = o_orderkey",
        "part": "l_partkey = p_partkey",
        "supplier": "l_suppkey = s_suppkey",
        "partsupp": "l_partkey = ps_partkey and l_suppkey = ps_suppkey",
    },
    "orders": {"customer": "o_custkey = c_custkey"},
    "partsupp": {"part": "ps_partkey = p_partkey", "supplier": "ps_suppkey = s_suppkey"},
    "customer": {"nation": "c_nationkey = n_nationkey"},
    "supplier": {"nation": "s_nationkey = n_nationkey"},
    "nation": {"region": "n_regionkey = r_regionkey"},
}
REFERRED = {  # a table, and a table of which many rows refer to it
    "orders": ("lineitem", "l_orderkey = o_orderkey"),
    "part": ("partsupp", "ps_partkey = p_partkey"),
    "customer": ("orders", "o_custkey = c_custkey"),
    "supplier": ("partsupp", "ps_suppkey = s_suppkey"),
    "nation": ("supplier", "s_nationkey = n_nationkey"),
}
