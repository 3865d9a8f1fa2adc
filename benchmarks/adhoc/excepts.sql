-- customers without an order
select count(*) as customers
from (select c_custkey from customer except select o_custkey from orders) as idle;

-- parts that nobody ordered in a year, by NOT IN  [weak]
select p_brand, count(*) as parts
from part
where p_partkey not in (select l_partkey from lineitem where l_shipdate >= date '1997-01-01' and l_shipdate < date '1998-01-01')
group by p_brand
order by p_brand;

-- days on which something was ordered and shipped and received
select count(*) as days
from (select o_orderdate as day from orders intersect select l_shipdate from lineitem intersect select l_receiptdate from lineitem) as common;

-- pairs that are in stock and were not sold
select count(*) as pairs, min(ps_partkey) as first
from (select ps_partkey, ps_suppkey from partsupp except select l_partkey, l_suppkey from lineitem) as unsold;
