-- days from order to shipping as the key  [weak]
select date_diff('day', o_orderdate, l_shipdate) as days, count(*) as items, sum(l_quantity) as quantity
from lineitem, orders
where o_orderkey = l_orderkey
group by days
order by days;

-- revenue by month  [weak]
select date_trunc('month', l_shipdate) as month, sum(l_extendedprice * (1 - l_discount)) as revenue
from lineitem
group by month
order by month;

-- orders by weekday and hundred thousands
select dayofweek(o_orderdate) as weekday, floor(o_totalprice / 100000) as price, count(*) as orders
from orders
group by weekday, price
order by weekday, price;

-- customers by the first two digits of the telephone number and length of the address
select substring(c_phone, 1, 2) as prefix, length(c_address) as letters, count(*) as customers, sum(c_acctbal) as balance
from customer
group by prefix, letters
order by prefix, letters;

-- stock by the remainder of a key
select ps_suppkey % 97 as share, avg(ps_supplycost) as cost, max(ps_availqty) as stock
from partsupp
group by share
order by share;
