-- a sum by few texts
select id1, sum(v1) as v1
from x
group by id1
;
-- a sum by two texts
select id1, id2, sum(v1) as v1
from x
group by id1, id2
;
-- a sum and a mean by many texts
select id3, sum(v1) as v1, avg(v3) as v3
from x
group by id3
;
-- means by few numbers
select id4, avg(v1) as v1, avg(v2) as v2, avg(v3) as v3
from x
group by id4
;
-- sums by many numbers
select id6, sum(v1) as v1, sum(v2) as v2, sum(v3) as v3
from x
group by id6
;
-- a median and a deviation by two numbers
select id4, id5, median(v3) as median_v3, stddev_samp(v3) as deviation_v3
from x
group by id4, id5
;
-- a difference of extremes by many texts
select id3, max(v1) - min(v2) as span
from x
group by id3
;
-- the two largest in each of many groups
select id6, v3
from (select id6, v3, row_number() over (partition by id6 order by v3 desc) as place from x where v3 is not null)
where place <= 2
;
-- the share of variance that a line explains, by a text and a number
select id2, id4, round(corr(v1, v2) ^ 2, 9) as r2
from x
group by id2, id4
;
-- nearly as many groups as rows, by all six keys
select id1, id2, id3, id4, id5, id6, sum(v3) as v3, count(*) as rows
from x
group by id1, id2, id3, id4, id5, id6
;
