-- sizes of line items
select case when l_quantity < 10 then 'small' when l_quantity < 30 then 'medium' else 'large' end as size, count(*) as items, avg(l_discount) as discount
from lineitem
group by size
order by size;

-- a pivot by hand
select l_shipmode, sum(case when year(l_shipdate) = 1994 then l_extendedprice else 0 end) as y1994, sum(case when year(l_shipdate) = 1995 then l_extendedprice else 0 end) as y1995, count(case when l_returnflag = 'R' then 1 end) as returned
from lineitem
group by l_shipmode
order by l_shipmode;

-- customers by what they owe, beside their segment
select c_mktsegment, case when c_acctbal < 0 then 'owes' when c_acctbal = 0 then 'even' else 'has' end as state, count(*) as customers, min(c_acctbal) as least
from customer
group by c_mktsegment, state
order by c_mktsegment, state;

-- a key by CASE over two joined tables
select case o_orderpriority when '1-URGENT' then 1 when '2-HIGH' then 1 else 0 end as urgent, case when c_nationkey < 10 then 'a' else 'b' end as half, sum(o_totalprice) as price
from orders, customer
where c_custkey = o_custkey
group by urgent, half
order by urgent, half;
