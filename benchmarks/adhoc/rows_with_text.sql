-- a thousand rows with their texts  [weak]
select l_orderkey, l_linenumber, l_shipinstruct, l_comment
from lineitem
where l_extendedprice > 90000
order by l_orderkey, l_linenumber
limit 1000;

-- customers of one nation with all that is known of them
select *
from customer
where c_nationkey = 7 and c_acctbal > 9990
order by c_custkey;

-- orders with their customers' names
select o_orderkey, c_name, c_address, o_comment
from orders, customer
where c_custkey = o_custkey and o_totalprice > 450000
order by o_orderkey;

-- a text in capitals and its length
select upper(s_name) as name, length(s_comment) as letters, reverse(s_address) as address
from supplier
where s_acctbal < -900
order by s_suppkey;
