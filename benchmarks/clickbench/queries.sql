-- all rows
select count(*) as hits
from hits
;
-- a filter that few rows pass
select count(*) as hits
from hits
where AdvEngineID <> 0
;
-- three aggregates without groups
select sum(AdvEngineID) as engines, count(*) as hits, avg(ResolutionWidth) as width
from hits
;
-- the mean of numbers of 64 bits
select avg(UserID) as mean
from hits
;
-- distinct numbers
select count(distinct UserID) as users
from hits
;
-- distinct texts
select count(distinct SearchPhrase) as phrases
from hits
;
-- extremes of dates
select min(make_date(EventDate)) as earliest, max(make_date(EventDate)) as latest
from hits
;
-- groups by few numbers, behind a filter
select AdvEngineID, count(*) as hits
from hits
where AdvEngineID <> 0
group by AdvEngineID
order by hits desc, AdvEngineID
;
-- distinct numbers in each group
select RegionID, count(distinct UserID) as users
from hits
group by RegionID
order by users desc, RegionID
limit 10
;
-- several aggregates beside distinct numbers
select RegionID, sum(AdvEngineID) as engines, count(*) as hits, avg(ResolutionWidth) as width,
    count(distinct UserID) as users
from hits
group by RegionID
order by hits desc, RegionID
limit 10
;
-- distinct numbers by a short text
select MobilePhoneModel, count(distinct UserID) as users
from hits
where MobilePhoneModel <> ''
group by MobilePhoneModel
order by users desc, MobilePhoneModel
limit 10
;
-- distinct numbers by a number and a short text
select MobilePhone, MobilePhoneModel, count(distinct UserID) as users
from hits
where MobilePhoneModel <> ''
group by MobilePhone, MobilePhoneModel
order by users desc, MobilePhone, MobilePhoneModel
limit 10
;
-- groups by a text
select SearchPhrase, count(*) as hits
from hits
where SearchPhrase <> ''
group by SearchPhrase
order by hits desc, SearchPhrase
limit 10
;
-- distinct numbers by a text
select SearchPhrase, count(distinct UserID) as users
from hits
where SearchPhrase <> ''
group by SearchPhrase
order by users desc, SearchPhrase
limit 10
;
-- groups by a number and a text
select SearchEngineID, SearchPhrase, count(*) as hits
from hits
where SearchPhrase <> ''
group by SearchEngineID, SearchPhrase
order by hits desc, SearchEngineID, SearchPhrase
limit 10
;
-- groups by numbers of which many are different
select UserID, count(*) as hits
from hits
group by UserID
order by hits desc, UserID
limit 10
;
-- groups by such numbers and a text
select UserID, SearchPhrase, count(*) as hits
from hits
group by UserID, SearchPhrase
order by hits desc, UserID, SearchPhrase
limit 10
;
-- the first of these groups by their keys
select UserID, SearchPhrase, count(*) as hits
from hits
group by UserID, SearchPhrase
order by UserID, SearchPhrase
limit 10
;
-- groups by a number, a part of a time and a text
select UserID, extract(minute from to_timestamp(EventTime)) as minute, SearchPhrase, count(*) as hits
from hits
group by UserID, minute, SearchPhrase
order by hits desc, UserID, minute, SearchPhrase
limit 10
;
-- the rows of one user
select UserID
from hits
where UserID = {user}
;
-- a pattern in long texts
select count(*) as hits
from hits
where URL like '%google%'
;
-- extremes of texts by a text, behind a pattern
select SearchPhrase, min(URL) as url, count(*) as hits
from hits
where URL like '%google%' and SearchPhrase <> ''
group by SearchPhrase
order by hits desc, SearchPhrase
limit 10
;
-- two patterns, one of them negative, and three kinds of aggregates
select SearchPhrase, min(URL) as url, min(Title) as title, count(*) as hits, count(distinct UserID) as users
from hits
where Title like '%Google%' and URL not like '%.google.%' and SearchPhrase <> ''
group by SearchPhrase
order by hits desc, SearchPhrase
limit 10
;
-- whole rows, the first ten behind a pattern
select *
from hits
where URL like '%google%'
order by EventTime, WatchID
limit 10
;
-- texts of the first ten rows by time
select SearchPhrase
from hits
where SearchPhrase <> ''
order by EventTime, WatchID
limit 10
;
-- the first ten texts
select SearchPhrase
from hits
where SearchPhrase <> ''
order by SearchPhrase
limit 10
;
-- the first ten by time and text
select SearchPhrase
from hits
where SearchPhrase <> ''
order by EventTime, SearchPhrase
limit 10
;
-- lengths of texts in large groups
select CounterID, avg(length(URL)) as characters, count(*) as hits
from hits
where URL <> ''
group by CounterID
having count(*) > {large}
order by characters desc, CounterID
limit 25
;
-- groups by a part of a text that a regular expression finds
select regexp_replace(Referer, '^[a-z]+://(?:www\.)?([^/]+)/.*$', '\1') as site, avg(length(Referer)) as characters,
    count(*) as hits, min(Referer) as referer
from hits
where Referer <> ''
group by site
having count(*) > {large}
order by characters desc, site
limit 25
;
-- ninety sums of one column
select {sums}
from hits
;
-- groups by two numbers, behind a filter on a text
select SearchEngineID, ClientIP, count(*) as hits, sum(IsRefresh) as refreshed, avg(ResolutionWidth) as width
from hits
where SearchPhrase <> ''
group by SearchEngineID, ClientIP
order by hits desc, SearchEngineID, ClientIP
limit 10
;
-- nearly as many groups as rows, behind that filter
select WatchID, ClientIP, count(*) as hits, sum(IsRefresh) as refreshed, avg(ResolutionWidth) as width
from hits
where SearchPhrase <> ''
group by WatchID, ClientIP
order by hits desc, WatchID, ClientIP
limit 10
;
-- as many groups as rows
select WatchID, ClientIP, count(*) as hits, sum(IsRefresh) as refreshed, avg(ResolutionWidth) as width
from hits
group by WatchID, ClientIP
order by hits desc, WatchID, ClientIP
limit 10
;
-- groups by long texts
select URL, count(*) as hits
from hits
group by URL
order by hits desc, URL
limit 10
;
-- the same with a constant among the keys
select 1 as one, URL, count(*) as hits
from hits
group by one, URL
order by hits desc, URL
limit 10
;
-- keys that follow from one another
select ClientIP, ClientIP - 1 as before, ClientIP - 2 as second, ClientIP - 3 as third, count(*) as hits
from hits
group by ClientIP, before, second, third
order by hits desc, ClientIP
limit 10
;
-- the pages of one site in a month
select URL, count(*) as views
from hits
where CounterID = 62 and make_date(EventDate) between date '2013-07-01' and date '2013-07-31'
    and DontCountHits = 0 and IsRefresh = 0 and URL <> ''
group by URL
order by views desc, URL
limit 10
;
-- their titles
select Title, count(*) as views
from hits
where CounterID = 62 and make_date(EventDate) between date '2013-07-01' and date '2013-07-31'
    and DontCountHits = 0 and IsRefresh = 0 and Title <> ''
group by Title
order by views desc, Title
limit 10
;
-- links, far down in their order
select URL, count(*) as views
from hits
where CounterID = 62 and make_date(EventDate) between date '2013-07-01' and date '2013-07-31'
    and IsRefresh = 0 and IsLink <> 0 and IsDownload = 0
group by URL
order by views desc, URL
limit 10 offset {thousand}
;
-- where views come from, with a CASE among the keys
select TraficSourceID, SearchEngineID, AdvEngineID,
    case when SearchEngineID = 0 and AdvEngineID = 0 then Referer else '' end as source, URL as target, count(*) as views
from hits
where CounterID = 62 and make_date(EventDate) between date '2013-07-01' and date '2013-07-31' and IsRefresh = 0
group by TraficSourceID, SearchEngineID, AdvEngineID, source, target
order by views desc, TraficSourceID, SearchEngineID, AdvEngineID, source, target
limit 10 offset {thousand}
;
-- hashes and days, with IN and a constant of 64 bits
select URLHash, make_date(EventDate) as day, count(*) as views
from hits
where CounterID = 62 and make_date(EventDate) between date '2013-07-01' and date '2013-07-31'
    and IsRefresh = 0 and TraficSourceID in (-1, 6) and RefererHash = {referer}
group by URLHash, day
order by views desc, URLHash, day
limit 10 offset {tenth}
;
-- sizes of windows in which one page was seen
select WindowClientWidth, WindowClientHeight, count(*) as views
from hits
where CounterID = 62 and make_date(EventDate) between date '2013-07-01' and date '2013-07-31'
    and IsRefresh = 0 and DontCountHits = 0 and URLHash = {url}
group by WindowClientWidth, WindowClientHeight
order by views desc, WindowClientWidth, WindowClientHeight
limit 10 offset {tenth}
;
-- views in each minute of two days
select date_trunc('minute', to_timestamp(EventTime)) as minute, count(*) as views
from hits
where CounterID = 62 and make_date(EventDate) between date '2013-07-14' and date '2013-07-15'
    and IsRefresh = 0 and DontCountHits = 0
group by minute
order by minute
limit 10 offset {thousand}
;
