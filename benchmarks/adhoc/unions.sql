-- line items and orders by month, one below the other
select month, sum(items) as items, sum(orders) as orders
from (select date_trunc('month', l_shipdate) as month, 1 as items, 0 as orders from lineitem union all select date_trunc('month', o_orderdate), 0, 1 from orders) as joined
group by month
order by month;

-- keys of customers and suppliers by nation
select c_nationkey as nation, 'customer' as kind, count(*) as count from customer group by c_nationkey
union all
select s_nationkey, 'supplier', count(*) from supplier group by s_nationkey
order by nation, kind;

-- distinct nations and sizes
select p_size as number from part
union
select n_nationkey from nation
union
select year(o_orderdate)::integer from orders
order by number;

-- the dearest of two tables
select kind, key, price
from (select 'part' as kind, p_partkey as key, p_retailprice as price from part union all select 'supply', ps_partkey, ps_supplycost from partsupp where ps_availqty > 9990) as joined
order by price desc, kind, key
limit 15;
