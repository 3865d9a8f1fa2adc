-- orders above their customer's average
select count(*) as orders
from orders as o
where o_totalprice > (select avg(i.o_totalprice) from orders as i where i.o_custkey = o.o_custkey);

-- customers that ordered in one year and not in the next
select c_mktsegment, count(*) as customers
from customer
where exists (select 1 from orders where o_custkey = c_custkey and o_orderdate < date '1993-01-01') and not exists (select 1 from orders where o_custkey = c_custkey and o_orderdate >= date '1998-01-01')
group by c_mktsegment
order by c_mktsegment;

-- the latest order beside each supplier's nation
select n_name, (select max(o_orderdate) from orders, customer where o_custkey = c_custkey and c_nationkey = n_nationkey) as latest
from nation
order by n_name;

-- parts cheaper than all that the same supplier sells in a brand
select count(*) as parts
from partsupp as a
where a.ps_supplycost < 10 and a.ps_availqty >= (select max(b.ps_availqty) from partsupp as b where b.ps_suppkey = a.ps_suppkey) - 5000;
