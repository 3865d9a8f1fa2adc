-- orders and shipments by day
select coalesce(day, shipped) as day, orders, items
from (select o_orderdate as day, count(*) as orders from orders group by o_orderdate) as o full join (select l_shipdate as shipped, count(*) as items from lineitem group by l_shipdate) as l on day = shipped
order by day;

-- customers and suppliers of the same balance
select count(*) as pairs, count(c_custkey) as customers, count(s_suppkey) as suppliers
from customer full join supplier on c_acctbal = s_acctbal and c_nationkey = s_nationkey;

-- nations with and without rich customers
select n_name, count(c_custkey) as customers, sum(c_acctbal) as balance
from nation full join customer on c_nationkey = n_nationkey and c_acctbal > 9900
group by n_name
order by n_name;

-- parts in stock or not, by size
select p_size, count(*) as pairs, count(ps_partkey) as stocked
from (select ps_partkey from partsupp where ps_availqty < 50) as few full join part on p_partkey = ps_partkey
group by p_size
order by p_size;
