-- median and 90th percentile of prices by how they are shipped  [weak]
select l_shipmode, median(l_extendedprice) as middle, quantile_cont(l_extendedprice, 0.9) as high
from lineitem
group by l_shipmode
order by l_shipmode;

-- quartiles of all orders of a year
select quantile_cont(o_totalprice, 0.25) as q1, median(o_totalprice) as q2, quantile_cont(o_totalprice, 0.75) as q3
from orders
where o_orderdate >= date '1995-01-01' and o_orderdate < date '1996-01-01';

-- the discrete 95th percentile of an integer by brand
select p_brand, quantile_disc(ps_availqty, 0.95) as stock
from partsupp, part
where p_partkey = ps_partkey
group by p_brand
order by p_brand;

-- medians of what is computed, by 25 groups
select n_name, median(c_acctbal) as balance, median(abs(c_acctbal - 1000)) as distance
from customer, nation
where n_nationkey = c_nationkey
group by n_name
order by n_name;
