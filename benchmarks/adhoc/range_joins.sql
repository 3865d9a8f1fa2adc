-- orders by bands of price in a table of constants
select band, count(*) as orders, sum(o_totalprice) as price
from orders, (values ('low', 0, 50000), ('middle', 50000, 200000), ('high', 200000, 1000000)) as bands(band, low, high)
where o_totalprice >= low and o_totalprice < high
group by band
order by band;

-- suppliers that have less than one of the same nation
select s.s_nationkey, count(*) as pairs
from supplier as s join supplier as t on s.s_nationkey = t.s_nationkey and s.s_acctbal < t.s_acctbal
group by s.s_nationkey
order by s.s_nationkey;

-- parts within ten cents of the price of a large one
select count(*) as pairs
from part as a, part as b
where a.p_size = 50 and b.p_size = 1 and a.p_brand = b.p_brand and a.p_retailprice between b.p_retailprice - 0.1 and b.p_retailprice + 0.1;

-- line items by quarters in a table of dates
select quarter, sum(l_extendedprice) as price
from lineitem, (values (1, date '1996-01-01', date '1996-04-01'), (2, date '1996-04-01', date '1996-07-01'), (3, date '1996-07-01', date '1996-10-01'), (4, date '1996-10-01', date '1997-01-01')) as quarters(quarter, first, past)
where l_shipdate >= first and l_shipdate < past
group by quarter
order by quarter;
