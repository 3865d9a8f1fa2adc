"""Random parameters for the 22 queries: the substitution rules of the TPC-H specification, clause 2.4, seeded.

A rule draws values and says which literals of the query's file, which hold the validation parameters, become which. Q11's
FRACTION depends on the scale alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from random import Random

from benchmarks import tpch

REGION_OF = {
    "ALGERIA": "AFRICA", "ARGENTINA": "AMERICA", "BRAZIL": "AMERICA", "CANADA": "AMERICA", "EGYPT": "MIDDLE EAST",
    "ETHIOPIA": "AFRICA", "FRANCE": "EUROPE", "GERMANY": "EUROPE", "INDIA": "ASIA", "INDONESIA": "ASIA",
    "IRAN": "MIDDLE EAST", "IRAQ": "MIDDLE EAST", "JAPAN": "ASIA", "JORDAN": "MIDDLE EAST", "KENYA": "AFRICA",
    "MOROCCO": "AFRICA", "MOZAMBIQUE": "AFRICA", "PERU": "AMERICA", "CHINA": "ASIA", "ROMANIA": "EUROPE",
    "SAUDI ARABIA": "MIDDLE EAST", "VIETNAM": "ASIA", "RUSSIA": "EUROPE", "UNITED KINGDOM": "EUROPE",
    "UNITED STATES": "AMERICA",
}  # fmt: skip
NATIONS = list(REGION_OF)
REGIONS = sorted(set(REGION_OF.values()))
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"]
MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
FINISHES = ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"]
KINDS = [
    f"{size} {coat}"
    for size, coat in product(
        ["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
        ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
    )
]
CONTAINERS = [
    f"{size} {vessel}"
    for size, vessel in product(
        ["SM", "LG", "MED", "JUMBO", "WRAP"],
        ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"],
    )
]
COLOR_NAMES = """
    almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon chocolate
    coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green
    grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint
    misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal saddle
    salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow
"""
COLORS = COLOR_NAMES.split()

Literals = dict[str, str]  # as in the query's file -> as drawn


def queries(scale: float, stream: int, seed: int = 0) -> dict[str, str]:
    """Name to text of one stream; stream 0 has the validation parameters."""
    texts = tpch.queries(scale)
    if stream == 0:
        return texts
    return {
        name: substituted(text, RULES[name](Random(f"{seed} {stream} {name}")))
        for name, text in texts.items()
    }


def substituted(text: str, literals: Literals) -> str:
    """The query with all literals replaced at once; raises `ValueError` for one that is not there."""
    query = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    missing = [old for old in literals if old not in query]
    if missing:
        raise ValueError(f"The query has no {', '.join(missing)}.")
    longest_first = sorted(literals, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda m: literals[m[0]], query) + "\n"


def _month(random: Random, first: tuple[int, int], last: tuple[int, int]) -> str:
    """The first day of a month between two, which are years and months."""
    number = random.randint(first[0] * 12 + first[1] - 1, last[0] * 12 + last[1] - 1)
    return f"'{number // 12}-{number % 12 + 1:02}-01'"


def _year(random: Random) -> str:
    return f"'{random.randint(1993, 1997)}-01-01'"


def _brand(random: Random) -> str:
    return f"'Brand#{random.randint(1, 5)}{random.randint(1, 5)}'"


def _quoted(values: list[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _q01(random: Random) -> Literals:
    return {"'90'": f"'{random.randint(60, 120)}'"}


def _q02(random: Random) -> Literals:
    return {
        "p_size = 15": f"p_size = {random.randint(1, 50)}",
        "'%BRASS'": f"'%{random.choice(FINISHES)}'",
        "'EUROPE'": f"'{random.choice(REGIONS)}'",
    }


def _q03(random: Random) -> Literals:
    day = f"'1995-03-{random.randint(1, 31):02}'"
    return {"'BUILDING'": f"'{random.choice(SEGMENTS)}'", "'1995-03-15'": day}


def _q04(random: Random) -> Literals:
    return {"'1993-07-01'": _month(random, (1993, 1), (1997, 10))}


def _q05(random: Random) -> Literals:
    return {"'ASIA'": f"'{random.choice(REGIONS)}'", "'1994-01-01'": _year(random)}


def _q06(random: Random) -> Literals:
    discount, quantity = random.randint(2, 9), random.randint(24, 25)
    year = _year(random)
    return {"'1994-01-01'": year, "0.06": f"0.0{discount}", "< 24": f"< {quantity}"}


def _q07(random: Random) -> Literals:
    first, second = random.sample(NATIONS, 2)
    return {"'FRANCE'": f"'{first}'", "'GERMANY'": f"'{second}'"}


def _q08(random: Random) -> Literals:
    nation = random.choice(NATIONS)
    kind = f"{random.choice(KINDS)} {random.choice(FINISHES)}"
    return {
        "'BRAZIL'": f"'{nation}'",
        "'AMERICA'": f"'{REGION_OF[nation]}'",
        "'ECONOMY ANODIZED STEEL'": f"'{kind}'",
    }


def _q09(random: Random) -> Literals:
    return {"'%green%'": f"'%{random.choice(COLORS)}%'"}


def _q10(random: Random) -> Literals:
    return {"'1993-10-01'": _month(random, (1993, 2), (1995, 1))}


def _q11(random: Random) -> Literals:
    return {"'GERMANY'": f"'{random.choice(NATIONS)}'"}


def _q12(random: Random) -> Literals:
    return {"'MAIL', 'SHIP'": _quoted(random.sample(MODES, 2)), "'1994-01-01'": _year(random)}


def _q13(random: Random) -> Literals:
    first = random.choice(["special", "pending", "unusual", "express"])
    second = random.choice(["packages", "requests", "accounts", "deposits"])
    return {"'%special%requests%'": f"'%{first}%{second}%'"}


def _q14(random: Random) -> Literals:
    return {"'1995-09-01'": _month(random, (1993, 1), (1997, 12))}


def _q15(random: Random) -> Literals:
    return {"'1996-01-01'": _month(random, (1993, 1), (1997, 10))}


def _q16(random: Random) -> Literals:
    sizes = ", ".join(map(str, random.sample(range(1, 51), 8)))
    return {
        "'Brand#45'": _brand(random),
        "'MEDIUM POLISHED%'": f"'{random.choice(KINDS)}%'",
        "(49, 14, 23, 45, 19, 3, 36, 9)": f"({sizes})",
    }


def _q17(random: Random) -> Literals:
    return {"'Brand#23'": _brand(random), "'MED BOX'": f"'{random.choice(CONTAINERS)}'"}


def _q18(random: Random) -> Literals:
    return {"> 300": f"> {random.randint(312, 315)}"}


def _q19(random: Random) -> Literals:
    """Quantities of 1 to 10, 10 to 20 and 20 to 30, each the low end of a range of ten."""
    literals = {}
    for brand, quantity in (("12", 1), ("23", 10), ("34", 20)):
        low = random.randint(quantity, quantity // 10 * 10 + 10)
        old = f"l_quantity >= {quantity} and l_quantity <= {quantity} + 10"
        literals[old] = f"l_quantity >= {low} and l_quantity <= {low} + 10"
        literals[f"'Brand#{brand}'"] = _brand(random)
    return literals


def _q20(random: Random) -> Literals:
    return {
        "'forest%'": f"'{random.choice(COLORS)}%'",
        "'1994-01-01'": _year(random),
        "'CANADA'": f"'{random.choice(NATIONS)}'",
    }


def _q21(random: Random) -> Literals:
    return {"'SAUDI ARABIA'": f"'{random.choice(NATIONS)}'"}


def _q22(random: Random) -> Literals:
    codes = _quoted([str(code) for code in random.sample(range(10, 35), 7)])
    return {"'13', '31', '23', '29', '30', '18', '17'": codes}


RULES: dict[str, Callable[[Random], Literals]] = {
    "q01": _q01, "q02": _q02, "q03": _q03, "q04": _q04, "q05": _q05, "q06": _q06, "q07": _q07, "q08": _q08,
    "q09": _q09, "q10": _q10, "q11": _q11, "q12": _q12, "q13": _q13, "q14": _q14, "q15": _q15, "q16": _q16,
    "q17": _q17, "q18": _q18, "q19": _q19, "q20": _q20, "q21": _q21, "q22": _q22,
}  # fmt: skip
