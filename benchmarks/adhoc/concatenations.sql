-- a key made of three flags  [weak]
select l_returnflag || '-' || l_linestatus || '-' || l_shipinstruct as label, count(*) as items, sum(l_extendedprice) as price
from lineitem
group by label
order by label;

-- a key made of a name and a year
select n_name || ' ' || year(o_orderdate) as label, sum(o_totalprice) as price
from orders, customer, nation
where c_custkey = o_custkey and n_nationkey = c_nationkey
group by label
order by label;

-- distinct labels of parts
select distinct concat(p_brand, '/', p_container) as label
from part
order by label;

-- the lists of ship modes that orders of three priorities met
select o_orderpriority, string_agg(distinct l_shipmode, ',' order by l_shipmode) as modes
from orders, lineitem
where o_orderkey = l_orderkey and o_totalprice > 400000
group by o_orderpriority
order by o_orderpriority;
