"""The 105 columns of `hits`: name, type in the file, and what they hold. Those with a maker follow from a row's user, page and moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from benchmarks.clickbench import texts
from benchmarks.zipf import (
    Integers,
    Random,
    chosen,
    each_once,
    mixed,
    picked,
    ranks,
    words,
)

# Published for 100 M rows: 18 M different UserID and URL, 6 M of 13 M SearchPhrase that are not empty.  A Zipf law with this exponent over
# this many ranks a row draws that share of different ones, whatever the number of rows.
USER_LAW = (0.198, 0.7)
URL_LAW = (0.225, 0.8)
REFERER_LAW = (0.245, 0.8)
PHRASE_LAW = (1.015, 0.7)
PHRASES_EMPTY, REFERERS_EMPTY = 0.87, 0.19
FIRST_SECOND, SECONDS = 1_372_723_200, 30 * 86_400  # from 2 July 2013 on
DAY_SECONDS = 86_400
OFTEN = 1.0  # the exponent of columns of few values


@dataclass(frozen=True)
class Hits:
    """What the columns of some rows follow from: numbers, one for each row."""

    random: Random
    users: Integers  # ranks
    pages: Integers
    referers: Integers  # -1: none
    phrases: Integers  # -1: none
    seconds: Integers
    watches: Integers

    @property
    def rows(self) -> int:
        return len(self.users)


def drawn(random: Random, rows: int, whole: int, start: int) -> Hits:
    """`rows` hits from row `start` on of a table of `whole` rows."""

    def of_law(law: tuple[float, float], share: float = 1) -> Integers:
        return ranks(random, rows, max(10, round(law[0] * whole * share)), law[1])

    phrases = of_law(PHRASE_LAW, 1 - PHRASES_EMPTY)
    referers = of_law(REFERER_LAW, 1 - REFERERS_EMPTY)
    return Hits(
        random,
        of_law(USER_LAW),
        of_law(URL_LAW),
        np.where(random.random(rows) < REFERERS_EMPTY, -1, referers),
        np.where(random.random(rows) < PHRASES_EMPTY, -1, phrases),
        FIRST_SECOND + random.integers(0, SECONDS, rows),
        mixed(np.arange(start, start + rows), 1) & np.int64((1 << 63) - 1),
    )


Maker = Callable[[Hits], "Integers | pa.Array"]


def text(numbers: Integers, made: Callable[[Integers], pa.Array]) -> pa.Array:
    """The text of each number, "" for negative ones, as a dictionary."""
    different, places = each_once(numbers)
    known = different[different >= 0]
    values = made(known) if len(known) else pa.array([], pa.string())
    if len(known) < len(different):
        values = pa.concat_arrays([pa.array([""] * (len(different) - len(known))), values])
    return pa.DictionaryArray.from_arrays(pa.array(places), values.cast(pa.binary()))


def codes(number: int, zeros: float = 0.0) -> Maker:
    """Numbers below `number`, small ones often, and this share of zeros besides."""

    def made(hits: Hits) -> Integers:
        found = ranks(hits.random, hits.rows, number, OFTEN)
        return np.where(hits.random.random(hits.rows) < zeros, 0, found) if zeros else found

    return made


def of_user(number: int, salt: int, zeros: float = 0.0) -> Maker:
    """Numbers that a user keeps, small ones often, and this share of users with zero besides."""

    def made(hits: Hits) -> Integers:
        share = picked(hits.users, salt, 1 << 20) / float(1 << 20)
        share = np.maximum(share - zeros, 0) / (1 - zeros)
        return (float(number) ** share).astype(np.int64) - 1

    return made


def names(number: int, salt: int, empty: float = 0.0, *, of: Maker | None = None) -> Maker:
    """Some of this many short texts, and this share of empty ones."""

    @cache
    def values() -> pa.Array:
        return pa.array(["", *words(number - 1, salt)]).cast(pa.binary())

    def made(hits: Hits) -> pa.Array:
        places = (of or codes(number, empty))(hits)
        return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), values())

    return made


def zero(hits: Hits) -> Integers:
    """One value in all rows."""
    return np.zeros(hits.rows, np.int64)


def _search_engines(hits: Hits) -> Integers:
    engines = 1 + picked(hits.phrases, 15, 1 << 20) ** 2 * 90 // (1 << 40)
    return np.where(hits.phrases < 0, 0, engines)


def _addresses_of_users(hits: Hits) -> Integers:
    """Most users have one; 32 bits with a sign."""
    return mixed(hits.users * 3 + picked(hits.watches, 16, 8) // 7, texts.NETWORKS) >> np.int64(32)


def _hashes(numbers: Integers) -> Integers:
    return np.where(numbers < 0, 0, texts.address_hashes(numbers))


def _phones(hits: Hits) -> Integers:
    return of_user(90, 17, zeros=0.9)(hits)


def _phone_models(hits: Hits) -> Integers:
    """A user of a phone has a model, another has none."""
    return np.where(_phones(hits) == 0, 0, 1 + picked(hits.users, 18, 165))


def _original_addresses(hits: Hits) -> pa.Array:
    return text(np.where(picked(hits.watches, 19, 20) == 0, hits.pages, -1), texts.addresses)


def _time(of: float) -> Maker:
    """Milliseconds, 0 in this share of the rows."""
    return lambda hits: np.where(
        hits.random.random(hits.rows) < of, 0, (hits.random.exponential(300, hits.rows))
    ).astype(np.int64)


INT16, INT32, INT64 = pa.int16(), pa.int32(), pa.int64()
TEXT = pa.binary()

COLUMNS: dict[str, tuple[pa.DataType, Maker]] = {
    "WatchID": (INT64, lambda h: h.watches),
    "JavaEnable": (INT16, of_user(2, 20)),
    "Title": (TEXT, lambda h: text(np.where(h.pages % 7 == 3, -1, h.pages), texts.titles)),
    "GoodEvent": (INT16, lambda h: zero(h) + 1),
    "EventTime": (INT64, lambda h: h.seconds),
    "EventDate": (pa.uint16(), lambda h: h.seconds // DAY_SECONDS),
    "CounterID": (INT32, lambda h: texts.counters(h.pages)),
    "ClientIP": (INT32, _addresses_of_users),
    "RegionID": (INT32, of_user(9_000, 21)),
    "UserID": (INT64, lambda h: texts.users(h.users)),
    "CounterClass": (INT16, codes(2)),
    "OS": (INT16, of_user(90, 22)),
    "UserAgent": (INT16, of_user(80, 23)),
    "URL": (TEXT, lambda h: text(h.pages, texts.addresses)),
    "Referer": (TEXT, lambda h: text(h.referers, texts.addresses)),
    "IsRefresh": (INT16, codes(2, 0.8)),
    "RefererCategoryID": (INT16, codes(20, 0.5)),
    "RefererRegionID": (INT32, codes(2_000, 0.4)),
    "URLCategoryID": (INT16, lambda h: picked(texts.sites(h.pages), 24, 25)),
    "URLRegionID": (INT32, lambda h: picked(texts.sites(h.pages), 25, 3_000)),
    "ResolutionWidth": (INT16, lambda h: 640 + 16 * of_user(120, 26)(h)),
    "ResolutionHeight": (INT16, lambda h: 480 + 16 * of_user(80, 27)(h)),
    "ResolutionDepth": (INT16, lambda h: 8 * (of_user(4, 28)(h) + 1)),
    "FlashMajor": (INT16, of_user(16, 29, 0.2)),
    "FlashMinor": (INT16, of_user(10, 30, 0.2)),
    "FlashMinor2": (TEXT, names(60, 30, of=of_user(60, 31, 0.4))),
    "NetMajor": (INT16, codes(3, 0.6)),
    "NetMinor": (INT16, codes(6, 0.6)),
    "UserAgentMajor": (INT16, of_user(70, 32)),
    "UserAgentMinor": (TEXT, names(300, 31, of=of_user(300, 33))),
    "CookieEnable": (INT16, lambda h: 1 - codes(2, 0.98)(h)),
    "JavascriptEnable": (INT16, lambda h: 1 - codes(2, 0.97)(h)),
    "IsMobile": (INT16, lambda h: np.minimum(_phones(h), 1)),
    "MobilePhone": (INT16, _phones),
    "MobilePhoneModel": (TEXT, names(166, 32, of=_phone_models)),
    "Params": (TEXT, names(5_000, 33, 0.97)),
    "IPNetworkID": (INT32, of_user(3_000_000, 34)),
    "TraficSourceID": (INT16, lambda h: codes(11)(h) - 1),
    "SearchEngineID": (INT16, _search_engines),
    "SearchPhrase": (TEXT, lambda h: text(h.phrases, texts.phrases)),
    "AdvEngineID": (INT16, codes(60, 0.994)),
    "IsArtifical": (INT16, codes(2, 0.9)),
    "WindowClientWidth": (INT16, lambda h: 1900 - codes(1_500)(h)),
    "WindowClientHeight": (INT16, lambda h: 900 - codes(800)(h)),
    "ClientTimeZone": (INT16, lambda h: 60 * of_user(25, 35)(h) - 720),
    "ClientEventTime": (INT64, lambda h: h.seconds + 3600 * of_user(25, 35)(h) - 43_200),
    "SilverlightVersion1": (INT16, of_user(6, 36, 0.6)),
    "SilverlightVersion2": (INT16, of_user(3, 37, 0.8)),
    "SilverlightVersion3": (INT32, of_user(60_000, 38, 0.6)),
    "SilverlightVersion4": (INT16, of_user(3, 39, 0.9)),
    "PageCharset": (TEXT, names(12, 34, of=lambda h: picked(texts.sites(h.pages), 40, 12))),
    "CodeVersion": (INT32, codes(500)),
    "IsLink": (INT16, codes(2, 0.8)),
    "IsDownload": (INT16, codes(2, 0.98)),
    "IsNotBounce": (INT16, codes(2, 0.4)),
    "FUniqID": (INT64, lambda h: np.where(h.users % 3 == 0, 0, mixed(h.users, 41))),
    "OriginalURL": (TEXT, _original_addresses),
    "HID": (INT32, lambda h: mixed(h.watches, 42) >> np.int64(33)),
    "IsOldCounter": (INT16, zero),
    "IsEvent": (INT16, zero),
    "IsParameter": (INT16, zero),
    "DontCountHits": (INT16, codes(2, 0.9)),
    "WithHash": (INT16, codes(2, 0.95)),
    "HitColor": (TEXT, lambda h: chosen(["F", "D", "R", "S", "5"], codes(5)(h)).cast(TEXT)),
    "LocalEventTime": (INT64, lambda h: h.seconds + 14_400),
    "Age": (INT16, of_user(56, 43, 0.3)),
    "Sex": (INT16, of_user(3, 44, 0.3)),
    "Income": (INT16, of_user(5, 45, 0.3)),
    "Interests": (INT16, of_user(16_000, 46, 0.3)),
    "Robotness": (INT16, of_user(30, 47, 0.7)),
    "RemoteIP": (INT32, _addresses_of_users),
    "WindowName": (INT32, codes(20_000, 0.9)),
    "OpenerName": (INT32, codes(20_000, 0.9)),
    "HistoryLength": (INT16, codes(100)),
    "BrowserLanguage": (TEXT, names(60, 35, of=of_user(60, 48))),
    "BrowserCountry": (TEXT, names(120, 36, of=of_user(120, 49))),
    "SocialNetwork": (TEXT, names(12, 37, 0.995)),
    "SocialAction": (TEXT, names(8, 38, 0.995)),
    "HTTPError": (INT16, zero),
    "SendTiming": (INT32, _time(0.4)),
    "DNSTiming": (INT32, _time(0.7)),
    "ConnectTiming": (INT32, _time(0.7)),
    "ResponseStartTiming": (INT32, _time(0.4)),
    "ResponseEndTiming": (INT32, _time(0.4)),
    "FetchTiming": (INT32, _time(0.4)),
    "SocialSourceNetworkID": (INT16, codes(10, 0.99)),
    "SocialSourcePage": (TEXT, names(4_000, 39, 0.99)),
    "ParamPrice": (INT64, codes(1_000, 0.999)),
    "ParamOrderID": (TEXT, names(500, 40, 0.999)),
    "ParamCurrency": (TEXT, lambda h: chosen(["RUB", "USD", "EUR"], codes(3, 0.9)(h)).cast(TEXT)),
    "ParamCurrencyID": (INT16, codes(3, 0.9)),
    "OpenstatServiceName": (TEXT, names(20, 41, 0.99)),
    "OpenstatCampaignID": (TEXT, names(2_000, 42, 0.99)),
    "OpenstatAdID": (TEXT, names(9_000, 43, 0.99)),
    "OpenstatSourceID": (TEXT, names(3_000, 44, 0.99)),
    "UTMSource": (TEXT, names(300, 45, 0.98)),
    "UTMMedium": (TEXT, names(60, 46, 0.98)),
    "UTMCampaign": (TEXT, names(2_000, 47, 0.98)),
    "UTMContent": (TEXT, names(3_000, 48, 0.99)),
    "UTMTerm": (TEXT, names(4_000, 49, 0.99)),
    "FromTag": (TEXT, names(400, 50, 0.99)),
    "HasGCLID": (INT16, codes(2, 0.99)),
    "RefererHash": (INT64, lambda h: _hashes(h.referers)),
    "URLHash": (INT64, lambda h: _hashes(h.pages)),
    "CLID": (INT32, codes(200, 0.98)),
}

SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
