-- 30,000 a unit of scale: the first of TPC-H's. A city is nine characters of its nation and a digit, which spreads a nation's
-- customers evenly over ten cities: the top bits of the key times Knuth's constant.
select
    c_custkey,
    c_name,
    c_address,
    rpad(left(n_name, 9), 9, ' ') || ((c_custkey * 2654435761) % 4294967296 // 1048576 % 10) as c_city,
    n_name as c_nation,
    r_name as c_region,
    c_phone,
    c_mktsegment
from tpch.customer
join tpch.nation on c_nationkey = n_nationkey
join tpch.region on n_regionkey = r_regionkey
where c_custkey <= getvariable('customers')
order by c_custkey
