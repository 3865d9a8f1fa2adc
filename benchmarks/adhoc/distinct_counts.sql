-- two distinct counts by seven groups  [weak]
select l_shipmode, count(distinct l_suppkey) as suppliers, count(distinct l_partkey) as parts
from lineitem
group by l_shipmode
order by l_shipmode;

-- customers that ordered, and their number
select count(distinct o_custkey) as customers, count(*) as orders
from orders;

-- distinct days by year and priority
select year(o_orderdate) as year, o_orderpriority, count(distinct o_orderdate) as days, count(distinct o_clerk) as clerks
from orders
group by year, o_orderpriority
order by year, o_orderpriority;

-- distinct pairs
select count(*) as pairs
from (select distinct l_partkey, l_suppkey from lineitem) as pairs;
