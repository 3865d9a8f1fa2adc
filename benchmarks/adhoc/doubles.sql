-- roots and logarithms
select sum(sqrt(l_extendedprice::double)) as roots, sum(ln(l_quantity::double + 1)) as logarithms, max(exp(l_discount::double)) as powers
from lineitem;

-- averages of quotients by group
select l_shipmode, avg(l_extendedprice / l_quantity) as unit, avg(l_tax / (1 + l_discount)) as share
from lineitem
group by l_shipmode
order by l_shipmode;

-- rounded distances as a key
select round(sqrt(c_acctbal::double * c_acctbal::double) / 1000) as thousands, count(*) as customers, avg(c_acctbal::double) as average
from customer
group by thousands
order by thousands;

-- sines and powers of orders
select o_orderpriority, sum(sin(o_totalprice::double)) as sines, avg(power(o_totalprice::double, 0.25)) as powers
from orders
group by o_orderpriority
order by o_orderpriority;
