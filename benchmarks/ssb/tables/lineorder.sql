-- TPC-H's line items with what they need of their order, and the supply cost of PARTSUPP. Money is in cents, discount and tax in
-- percent. Keys beyond the smaller dimensions wrap around, so that each fact keeps a customer, a supplier and a part.
select
    l_orderkey as lo_orderkey,
    l_linenumber::integer as lo_linenumber,
    1 + (o_custkey - 1) % getvariable('customers') as lo_custkey,
    1 + (l_partkey - 1) % getvariable('parts') as lo_partkey,
    1 + (l_suppkey - 1) % getvariable('suppliers') as lo_suppkey,
    (year(o_orderdate) * 10000 + month(o_orderdate) * 100 + day(o_orderdate))::integer as lo_orderdate,
    o_orderpriority as lo_orderpriority,
    o_shippriority::varchar as lo_shippriority,
    l_quantity::integer as lo_quantity,
    (l_extendedprice * 100)::integer as lo_extendedprice,
    (o_totalprice * 100)::integer as lo_ordtotalprice,
    (l_discount * 100)::integer as lo_discount,
    ((l_extendedprice * 100)::bigint * (100 - (l_discount * 100)::bigint) // 100)::integer as lo_revenue,
    (ps_supplycost * 100)::integer as lo_supplycost,
    (l_tax * 100)::integer as lo_tax,
    (year(l_commitdate) * 10000 + month(l_commitdate) * 100 + day(l_commitdate))::integer as lo_commitdate,
    l_shipmode as lo_shipmode
from tpch.lineitem
join tpch.orders on l_orderkey = o_orderkey
join tpch.partsupp on l_partkey = ps_partkey and l_suppkey = ps_suppkey
order by lo_orderkey, lo_linenumber
