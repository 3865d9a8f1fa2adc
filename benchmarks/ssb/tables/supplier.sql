-- 2,000 a unit of scale: the first of TPC-H's; cities as in customer.sql.
select
    s_suppkey,
    s_name,
    s_address,
    rpad(left(n_name, 9), 9, ' ') || ((s_suppkey * 2654435761) % 4294967296 // 1048576 % 10) as s_city,
    n_name as s_nation,
    r_name as s_region,
    s_phone
from tpch.supplier
join tpch.nation on s_nationkey = n_nationkey
join tpch.region on n_regionkey = r_regionkey
where s_suppkey <= getvariable('suppliers')
order by s_suppkey
