-- deviation, variance and correlation by two groups  [weak]
select l_returnflag, stddev(l_extendedprice) as deviation, var_pop(l_discount) as variance, corr(l_quantity, l_extendedprice) as correlation
from lineitem
where l_returnflag <> 'N'
group by l_returnflag
order by l_returnflag;

-- deviation of prices by 150 types
select p_type, stddev_samp(p_retailprice) as deviation, avg(p_retailprice) as average, count(*) as parts
from part
group by p_type
order by p_type;

-- the spread of each customer's orders, the widest first
select o_custkey, stddev_pop(o_totalprice) as spread, count(*) as orders
from orders
group by o_custkey
having count(*) > 20
order by spread desc, o_custkey
limit 20;

-- covariance and variance of all line items of a year
select covar_pop(l_quantity, l_extendedprice) as covariance, var_samp(l_tax) as tax, stddev(l_quantity) as quantity
from lineitem
where l_shipdate >= date '1996-01-01' and l_shipdate < date '1997-01-01';
