-- one aggregate over all rows beside each
select id1, id2, id3, v2, sum(v2) over () as whole
from big
;
-- numbers and the first value in one order of all rows
select id1, id2, id3, v2, first_value(v2) over (order by id3) as first_v2, row_number() over (order by id3) as place
from big
;
-- aggregates of few partitions beside each row
select id1, id2, id3, v2, sum(v2) over (partition by id1) as whole, avg(v2) over (partition by id1) as mean
from big
;
-- ranks within partitions
select id1, id2, id3, v2, row_number() over (partition by id2 order by id3) as place,
    rank() over (partition by id2 order by v2 desc) as by_v2
from big
;
-- neighbours within partitions
select id1, id2, id3, v2, lag(v2) over (partition by id2 order by id3) as before,
    lead(v2) over (partition by id2 order by id3) as after
from big
;
-- a running sum
select id1, id2, id3, v2, sum(v2) over (partition by id2 order by id3) as so_far
from big
;
-- a moving mean of rows, over all
select id1, id2, id3, v2,
    avg(v2) over (order by id3 rows between 100 preceding and current row) as moving
from big
;
-- moving extremes of a range of keys
select id1, id2, id3, v2, min(v2) over keys_near as least, max(v2) over keys_near as most
from big
window keys_near as (order by id3 range between 100 preceding and 100 following)
;
-- two partitions that are not of one another
select id1, id2, id3, v2, sum(v2) over (partition by id1 order by id3) as by_id1,
    sum(v2) over (partition by id2 order by id3) as by_id2
from big
;
-- the two largest of each partition
select id2, v2
from big
qualify row_number() over (partition by id2 order by v2 desc) <= 2
;
-- quarters, and a place between 0 and 1
select id1, id2, id3, v2, ntile(4) over (partition by id2 order by id3) as quarter,
    percent_rank() over (partition by id2 order by id3) as share
from big
;
-- a running sum of the sums of groups
select id2, sum(v2) as v2, sum(sum(v2)) over (order by id2) as so_far
from big
group by id2
;
