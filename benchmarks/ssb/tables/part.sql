-- 5 manufacturers of 5 categories of 40 brands: the two digits of TPC-H's brand make the category, a number that depends on the
-- key alone the brand in it. The color is the first word of TPC-H's name, the name the two that follow.
select
    p_partkey,
    split_part(p_name, ' ', 2) || ' ' || split_part(p_name, ' ', 3) as p_name,
    'MFGR#' || right(p_mfgr, 1) as p_mfgr,
    'MFGR#' || right(p_brand, 2) as p_category,
    'MFGR#' || right(p_brand, 2) || (1 + (p_partkey * 2654435761) % 4294967296 // 1048576 % 40) as p_brand1,
    split_part(p_name, ' ', 1) as p_color,
    p_type,
    p_size,
    p_container
from tpch.part
where p_partkey <= getvariable('parts')
order by p_partkey
