-- pairs of line items of an order that were shipped on one day
select count(*) as pairs
from lineitem as a, lineitem as b
where a.l_orderkey = b.l_orderkey and a.l_linenumber < b.l_linenumber and a.l_shipdate = b.l_shipdate;

-- customers with two orders on one day
select a.o_custkey, count(*) as pairs
from orders as a, orders as b
where a.o_custkey = b.o_custkey and a.o_orderdate = b.o_orderdate and a.o_orderkey < b.o_orderkey
group by a.o_custkey
order by pairs desc, a.o_custkey
limit 20;

-- parts that two suppliers of one nation have
select n_name, count(*) as pairs
from partsupp as a, partsupp as b, supplier as s, supplier as t, nation
where a.ps_partkey = b.ps_partkey and a.ps_suppkey < b.ps_suppkey and s.s_suppkey = a.ps_suppkey and t.s_suppkey = b.ps_suppkey and s.s_nationkey = t.s_nationkey and n_nationkey = s.s_nationkey
group by n_name
order by n_name;

-- orders that come after a dearer one of the same customer
select count(distinct later.o_orderkey) as orders
from orders as earlier join orders as later on earlier.o_custkey = later.o_custkey and earlier.o_orderdate < later.o_orderdate and earlier.o_totalprice > later.o_totalprice
where earlier.o_orderpriority = '1-URGENT' and later.o_orderpriority = '5-LOW';
