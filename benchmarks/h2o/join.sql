-- a small table by a number
select j.*, small.id4 as small_id4, small.v2
from j join small on j.id1 = small.id1
;
-- a medium table by a number
select j.*, medium.id1 as medium_id1, medium.id4 as medium_id4, medium.id5 as medium_id5, medium.v2
from j join medium on j.id2 = medium.id2
;
-- the same with the rows that have no partner
select j.*, medium.id1 as medium_id1, medium.id4 as medium_id4, medium.id5 as medium_id5, medium.v2
from j left join medium on j.id2 = medium.id2
;
-- a medium table by a text
select j.*, medium.id1 as medium_id1, medium.id2 as medium_id2, medium.id4 as medium_id4, medium.v2
from j join medium on j.id5 = medium.id5
;
-- a table as large by a number
select j.*, big.id1 as big_id1, big.id2 as big_id2, big.id4 as big_id4, big.id5 as big_id5, big.id6 as big_id6, big.v2
from j join big on j.id3 = big.id3
;
