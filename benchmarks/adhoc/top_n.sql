-- the line items of the highest charge, an expression over all of them  [weak]
select l_orderkey, l_linenumber, l_extendedprice * (1 - l_discount) * (1 + l_tax) as charge
from lineitem
order by l_extendedprice * (1 - l_discount) * (1 + l_tax) desc, l_orderkey, l_linenumber
limit 25;

-- the dearest orders
select o_orderkey, o_totalprice, o_orderdate
from orders
order by o_totalprice desc, o_orderkey
limit 100;

-- the oldest orders of the lowest price, by two columns
select o_orderdate, o_totalprice, o_orderkey
from orders
order by o_orderdate, o_totalprice, o_orderkey
limit 50 offset 10;

-- parts by name
select p_name, p_partkey, p_retailprice
from part
order by p_name desc, p_partkey
limit 30;
