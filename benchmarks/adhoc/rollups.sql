-- totals by flag and status
select l_returnflag, l_linestatus, sum(l_quantity) as quantity, count(*) as items
from lineitem
group by rollup (l_returnflag, l_linestatus)
order by l_returnflag, l_linestatus;

-- totals by region, nation and year
select r_name, n_name, year(o_orderdate) as year, sum(o_totalprice) as price
from orders, customer, nation, region
where c_custkey = o_custkey and n_nationkey = c_nationkey and r_regionkey = n_regionkey
group by rollup (r_name, n_name, year)
order by r_name, n_name, year;

-- a cube of two keys
select p_mfgr, p_size, count(*) as parts, max(p_retailprice) as price
from part
group by cube (p_mfgr, p_size)
order by p_mfgr, p_size;

-- grouping sets and which they are
select c_mktsegment, c_nationkey, grouping(c_mktsegment) as every_segment, sum(c_acctbal) as balance
from customer
group by grouping sets ((c_mktsegment), (c_nationkey), ())
order by c_mktsegment, c_nationkey;
