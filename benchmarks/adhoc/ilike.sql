-- words in comments, whatever their case  [weak]
select count(*) as items, sum(l_quantity) as quantity
from lineitem
where l_comment ilike '%REGULAR%deposits%';

-- LIKE and NOT LIKE on two columns
select p_brand, count(*) as parts
from part
where p_name like '%green%' and p_type not like '%BRASS' and p_name not ilike 'S%'
group by p_brand
order by p_brand;

-- comments of orders that begin or end so
select o_orderpriority, count(*) as orders
from orders
where o_comment like 'fur%' or o_comment like '%ly.'
group by o_orderpriority
order by o_orderpriority;

-- customers with a word in the comment
select c_nationkey, count(*) as customers, max(c_acctbal) as balance
from customer
where c_comment ilike '%express%'
group by c_nationkey
order by c_nationkey;
