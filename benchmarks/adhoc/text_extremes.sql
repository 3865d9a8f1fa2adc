-- the first and the last comment by three flags  [weak]
select l_returnflag, min(l_comment) as first, max(l_comment) as last
from lineitem
group by l_returnflag
order by l_returnflag;

-- the first and the last name of all parts
select min(p_name) as first, max(p_name) as last, count(*) as parts
from part;

-- the last clerk of each status and priority
select o_orderstatus, o_orderpriority, max(o_clerk) as clerk, min(o_comment) as comment
from orders
group by o_orderstatus, o_orderpriority
order by o_orderstatus, o_orderpriority;

-- the supplier whose address comes first in each nation
select n_name, min(s_address) as address, max(s_phone) as phone
from supplier, nation
where n_nationkey = s_nationkey
group by n_name
order by n_name;
