-- What analysts type: each line is asked here and of DuckDB, those of several statements in a database of their own; `!` makes the tables.
!create table orders as select i as id, 'c' || (i % 7) as customer, date '2023-01-01' + (i * 3 % 400)::int as day, (i * 37 % 101)::decimal(10,2) / 4 as amount, case i % 5 when 0 then 'paid' when 1 then 'open' when 2 then null else 'late' end as status, [i % 3, i % 4, null][1: i % 4] as tags, {'w': i % 10, 'u': 'kg'} as dims, '{"a": ' || (i % 4) || ', "b": ["x", "y' || i || '"], "c": {"d": null}}' as doc from range(60) r(i)
!create table customers as select 'c' || i as customer, ['Ann', 'Bob', null, 'Zoë', 'Émile', 'bob', ''][i + 1] as name, case when i % 2 = 0 then 'EU' else 'US' end as region, timestamp '2022-01-01 10:00:00' + i * interval '37 hours 5 minutes' as joined from range(7) r(i)
select date_trunc('month', day) as month, region, sum(amount) as total, count(distinct customer) as buyers from orders join customers using (customer) group by all order by all
select region, status, sum(amount), grouping(region, status) from orders natural join customers group by rollup (region, status) order by all
select customer, amount, amount / sum(amount) over (partition by customer) as share from orders order by id limit 10
select day, sum(amount) over (order by day range between interval 30 days preceding and current row) as m30 from orders order by day, m30
select customer, list(amount order by day desc)[1] as last_amount, max_by(amount, day), arg_min(id, amount) from orders group by customer order by customer
with m as (select date_trunc('month', day)::date as m, sum(amount) as s from orders group by 1) select m, s, lag(s) over (order by m) as prev, round(100 * (s - lag(s) over (order by m)) / nullif(lag(s) over (order by m), 0), 1) as pct from m order by m
with recursive cal(d) as (select date '2023-01-28' union all select d + 1 from cal where d < date '2023-02-03') select d, dayname(d), week(d), d::varchar, strftime(d, '%a %d %b'), isodow(d) from cal
select c.customer, coalesce(name, 'unknown') as n, (select count(*) from orders o where o.customer = c.customer and o.status = 'paid') as paid from customers c order by all
select * from customers c left join lateral (select id, amount from orders o where o.customer = c.customer order by amount desc, id limit 2) top on true order by c.customer, id
pivot orders on status using sum(amount) group by customer order by customer
pivot (select region, status, amount from orders join customers using (customer)) on status in ('paid', 'open') using sum(amount) as s, count(*) as n group by region order by region
unpivot (select customer, count(*) as n, sum(amount)::double as total from orders group by customer) on n, total into name metric value v order by all
select * from (select customer, status, amount from orders) pivot (avg(amount) for status in ('paid' as p, 'late' as l) group by customer) order by customer
select id, tags, len(tags), list_sum(tags), list_contains(tags, 2), tags[1], tags[-1], list_distinct(tags) from orders order by id limit 12
select id, unnest(tags) as tag from orders order by id, tag
select tag, count(*) from orders, unnest(tags) as u(tag) group by tag order by tag
select list_transform(tags, lambda x: x * 10), list_filter(tags, lambda x: x > 0), list_reduce([1] || tags, lambda a, b: coalesce(a, 0) + coalesce(b, 0)) from orders order by id limit 8
select [x * 2 for x in tags if x is not null] from orders order by id limit 8
select dims.w, dims.u || '!', dims['w'] + 1, struct_pack(a := id, b := dims) from orders order by id limit 4
select dims.*, id from orders order by id limit 3
select doc->'a', doc->>'$.b[1]', json_extract_string(doc, '$.c.d'), (doc->>'a')::int + 1, json_array_length(doc, '$.b'), json_keys(doc), json_type(doc, '$.c.d') from orders order by id limit 5
select je.key, count(*) from orders, json_each(doc) je group by je.key order by 1
select key, value, type, atom from json_each('{"a": 1, "b": [1, 2], "c": null}')
select fullkey, type, value from json_tree('{"a": {"b": [1, {"c": true}]}}')
select to_json({'a': [1, null], 'b': date '2020-01-01', 'c': 1.50::decimal(5,2)}), to_json(map {'k': 1}), row_to_json({'x': 1})
select from_json(doc, '{"a": "INTEGER", "b": ["VARCHAR"]}') from orders order by id limit 2
select json_object('id', id, 'tags', tags) from orders order by id limit 5
select json_merge_patch('{"a":1,"b":2}', '{"b":null,"c":3}'), '{"a":1}'::json = '{"a":1}'::json, json('[1, 2]')
select upper(left(name, 1)) || lower(substring(name, 2)), length(name), reverse(name), strip_accents(name), instr(name, 'o'), ascii(name) from customers order by customer
select string_split('a,b,,c', ','), split_part('a-b-c', '-', -1), array_to_string(['x', null, 'y'], '+'), concat_ws('/', 'a', null, 'b'), regexp_split_to_array('a1b22c', '\d+')
select regexp_replace('John Smith', '(\w+) (\w+)', '\2, \1'), regexp_extract('tel: 555-1234', '(\d+)-(\d+)', 2), regexp_matches('abc', '^a'), 'abc' similar to 'a.c', regexp_extract_all('a1b22', '[0-9]+')
select format('{:,.2f} {:>6} {:05d}', 1234567.891, 'ab', 42), printf('%5.1f|%-5s|%x', 3.14159, 'ab', 255), lpad('7', 3, '0'), repeat('ab', 3), translate('hello', 'el', 'ip')
select trim('  x '), ltrim('xxa', 'x'), rtrim('axx', 'x'), trim(both 'x' from 'xax'), replace('aaa', 'a', 'bb'), position('b' in 'abc'), overlay('abcdef' placing 'XX' from 2 for 3), starts_with('abc', 'ab'), contains('abc', 'bc'), suffix('abc', 'bc')
select levenshtein('kitten', 'sitting'), jaccard('duck', 'luck'), jaro_winkler_similarity('martha', 'marhta'), hamming('abc', 'abd'), damerau_levenshtein('ab', 'ba'), editdist3('a', 'b')
select md5('a'), sha256('a'), hex('abc'), unhex('616263'), base64('abc'::blob), from_base64('YWJj'), encode('é'), decode('\xC3\xA9'::blob), url_encode('a b&c'), url_decode('a%20b')
select date_diff('day', date '2024-02-28', date '2024-03-01'), datediff('month', date '2024-01-31', date '2024-02-29'), age(date '2024-03-01', date '2023-01-31'), date '2024-01-31' + interval 1 month, last_day(date '2024-02-05'), date_part('week', date '2021-01-01'), extract(dow from date '2024-06-02')
select strptime('03/04/2021 11:22 PM', '%d/%m/%Y %I:%M %p'), try_strptime('x', '%Y'), strftime(timestamp '2024-02-29 23:59:59.123', '%Y%m%d-%H%M%S.%f %j %U %W %y %B'), epoch(timestamp '2024-01-01'), to_timestamp(0), epoch_ms(1700000000000), make_date(2024, 2, 29), make_timestamp(2024, 1, 1, 1, 2, 3.5)
select time_bucket(interval '15 minutes', timestamp '2024-01-01 10:37:00'), date_trunc('quarter', date '2024-05-05'), date_trunc('week', timestamp '2024-01-03 12:00:00'), century(date '2000-01-01'), yearweek(date '2024-12-30'), to_days(3), interval '1 year 2 months' + interval '3 days', interval '90 minutes'::varchar
select generate_series(date '2024-01-31', date '2024-05-31', interval 1 month), range(timestamp '2024-01-01', timestamp '2024-01-02', interval 6 hour)
select id, row_number() over w, rank() over w, dense_rank() over w, ntile(3) over w, percent_rank() over w, cume_dist() over w from orders where id < 12 window w as (order by status nulls first, amount)
select id, first_value(id) over w, last_value(id) over w, nth_value(id, 2) over w, lead(amount, 2, -1) over (order by id), sum(amount) over (order by id rows between 2 preceding and 1 following exclude current row) from orders where id < 10 window w as (partition by status order by id rows between unbounded preceding and unbounded following) order by id
select customer, day, amount from orders qualify row_number() over (partition by customer order by amount desc, id) <= 2 order by customer, amount desc, day
select id, sum(amount) filter (where status = 'paid') over (order by id) as p, count(*) over (partition by status order by id groups between 1 preceding and 1 following), string_agg(customer, '' order by id) over (order by id rows 2 preceding) from orders where id < 15 order by id
select id, last_value(status ignore nulls) over (order by id) as s, lag(status ignore nulls) over (order by id) from orders where id < 12 order by id
select median(amount) over (partition by customer), quantile_cont(amount, 0.9) over (partition by customer), mode(status) over (partition by customer) from orders where id < 20 order by id
select customer, day, day - row_number() over (partition by customer order by day)::int as island from orders order by customer, day limit 10
create table stock (sku varchar primary key, n int default 0, t timestamp); insert into stock values ('a', 1, null), ('b', 2, null); insert into stock (sku, n) values ('a', 5), ('c', 9) on conflict (sku) do update set n = stock.n + excluded.n returning *
create table stock (sku varchar primary key, n int default 0); insert into stock values ('a', 1), ('b', 2); insert into stock values ('a', 5) on conflict do nothing; insert or replace into stock values ('b', 20); from stock order by sku
create table stock (sku varchar primary key, n int); insert into stock values ('a', 1), ('b', 2); merge into stock using (values ('a', 10), ('z', 7)) v(sku, n) on stock.sku = v.sku when matched then update set n = stock.n + v.n when not matched then insert values (v.sku, v.n); from stock order by sku
create table stock (sku varchar primary key, n int); insert into stock values ('a', 1), ('b', 2), ('c', 3); merge into stock s using (select 'a' as sku, 0 as n union all select 'b', 5) v using (sku) when matched and v.n = 0 then delete when matched then update set n = v.n when not matched by source then update set n = -1 returning merge_action, sku, n
create table stock (sku varchar, n int); insert into stock values ('a', 1), ('b', null); update stock set n = coalesce(n, 0) + 1, sku = upper(sku) where n is null or n > 0 returning sku, n
create table stock (sku varchar, n int); insert into stock select 'k' || i, i from range(5) r(i); delete from stock using (values ('k1'), ('k3')) d(sku) where stock.sku = d.sku; update stock set n = o.n * 10 from (select sku, n from stock) o where o.sku = stock.sku and o.n > 2; from stock order by all
create table a as from range(3) t(x); alter table a add column y int default 7; alter table a rename x to z; alter table a alter y type varchar; insert into a values (9, 'q'); from a order by z
create or replace view v as select customer, sum(amount) s from orders group by 1; select * from v where s > 50 order by customer
create macro pct(a, b) as round(100.0 * a / nullif(b, 0), 1); select pct(1, 3), pct(1, 0), pct(id, 7) from orders order by id limit 3
create macro top(n) as table select id, amount from orders order by amount desc, id limit n; from top(3)
create type mood as enum ('sad', 'ok', 'happy'); select 'ok'::mood < 'happy'::mood, enum_range(null::mood), ['sad', 'ok']::mood[], enum_code('happy'::mood)
with a as (select 1 x), b as (select x + 1 as y from a), c as (select x, y from a, b) select c.*, (select max(y) from b) from c
with recursive tree(id, parent, path) as (select 0, null::int, [0] union all select c.id, c.parent, list_append(tree.path, c.id) from (values (1, 0), (2, 0), (3, 1), (4, 3)) c(id, parent) join tree on c.parent = tree.id) select id, path, len(path) as depth, array_to_string(path, '>') from tree order by id
with recursive fib(a, b, n) as (select 0, 1, 1 union all select b, a + b, n + 1 from fib where n < 12) select list(a) from fib
select count(*) between 0 and 60 from orders tablesample bernoulli(50%) repeatable (42)
select table_name, column_name, data_type, is_nullable, ordinal_position from information_schema.columns where table_name = 'orders' order by ordinal_position
select table_name, table_type from information_schema.tables order by 1
select column_name, column_type, "null", key from (describe orders)
select column_name, column_type, min, max, count, null_percentage from (summarize select id, customer, amount from orders)
select table_name, estimated_size, column_count from duckdb_tables() order by 1
select name, type, pk, "notnull" from pragma_table_info('customers')
select * exclude (doc, dims, tags) replace (amount * 2 as amount) from orders order by id limit 2
select columns('^(id|am)') from orders order by 1 limit 2
select max(columns(* exclude (doc, dims, tags))) from orders
select * like 'a%' from orders order by 1 limit 1
from orders select customer, count(*) n where amount > 5 group by customer order by n desc, customer limit 3
select customer: id, upper(status) s from orders order by id limit 2
select id from orders order by all desc limit 2 offset 1
select distinct on (customer) customer, id, amount from orders order by customer, amount desc, id
select status, count(*) from orders group by status having count(*) > 5 order by 2 desc, 1 nulls last
select count(*), count(status), count(distinct status), count(*) filter (where amount > 10), sum(case when status = 'paid' then amount else 0 end), avg(amount), stddev(amount), median(amount) from orders
select region, count(*) from customers group by cube(region) order by all
select o.id, c.name from orders o asof join (values (timestamp '2023-02-01', 'first'), (timestamp '2023-06-01', 'second')) c(t, name) on o.day >= c.t order by id limit 10
select a.id, b.id from orders a join orders b on a.customer = b.customer and a.id < b.id and b.day between a.day and a.day + interval 10 day order by all limit 10
select customer from customers except select customer from orders where amount > 20 order by 1
select customer, 1 as k from customers union by name select 2 as k, 'x' as customer, 3 as extra order by all
select * from customers where (customer, region) in (('c1', 'US'), ('c2', 'US'), ('c4', 'EU')) order by 1
select * from customers where name ilike 'b%' or name is null order by customer
select exists(select 1 from orders where amount > 1000), not exists(from orders where id = 3), 5 > all(select id from orders where id < 3), 'c1' = any(select customer from customers)
select case when amount < 5 then 'low' when amount < 15 then 'mid' else 'high' end as band, count(*), min(amount), max(amount) from orders group by band order by band
select histogram(status), approx_count_distinct(customer), entropy(status), kurtosis(amount), skewness(amount), mad(amount), bit_xor(id), bool_or(id > 50), product(1 + id / 100), favg(amount), first(id order by id desc), any_value(status) from orders
select regr_slope(amount, id), corr(amount, id), covar_samp(amount, id), regr_r2(amount, id), var_pop(id) from orders
select map_from_entries([('a', 1), ('b', 2)]), map {'x': 1}['x'], map_keys(map {'x': 1}), cardinality(map {'x': 1, 'y': 2}), map {'x': 1}['z'], element_at(map {'x': 1}, 'x'), map_concat(map {'a': 1}, map {'b': 2})
select 1 / 0, 5 // 2, -5 // 2, 5 % -3, 2 ** 10, 7 & 3, 1 << 4, ~5, 10 / 4, 0.1 + 0.2 = 0.3, 1e308 * 10, 'a' < 'B', null = null, null is not distinct from null
select cast('12.5' as decimal(5,1)), try_cast('x' as int), '2024-02-30'::varchar, 3.7::int, -3.5::int, 2.5::int, '1e3'::double, true::int, 'yes'::bool, 1::varchar || 'a', '101'::bit, 255::utinyint
select round(2.5), round(-2.5), round(1234.567, -2), ceil(-1.5), floor(-1.5), trunc(-1.7), sign(-3), abs(-2::tinyint), mod(7, -3), gcd(12, 18), lcm(4, 6), factorial(5), bit_count(255), even(2.1), isnan('nan'::double), degrees(pi()), log(100), ln(exp(1)), pow(2, 0.5), cbrt(27)
select x, sum(x) over (order by x), avg(x) over (), x - avg(x) over () from (values (1.5), (null), (2.25)) t(x) order by x nulls last
select a.*, b.* from (values (1, 'x'), (2, null)) a(i, s) full join (values (2, 'y'), (3, 'z')) b(i, t) on a.i = b.i order by a.i, b.i
select t.* from (values (1, 2), (3, 4)) t(a, b) positional join (values (5), (6), (7)) u(c) order by all
select i, j from range(3) a(i), lateral (select i * 10 + x as j from range(i) b(x)) order by all
select struct_insert({'a': 1}, b := 2), struct_extract({'a': 1}, 'a'), {'a': {'b': [1, 2]}}.a.b[2], row(1, 'x'), {'a': 1} = {'a': 1}, struct_keys({'k': 1, 'l': 2})
select unnest([{'a': 1, 'b': 2}, {'a': 3, 'b': null}], recursive := true)
select unnest(map_entries(map {'a': 1, 'b': 2})), unnest({'p': 1, 'q': 'x'})
select date '2024-01-01' - date '2023-12-25', timestamp '2024-01-01 12:00' - timestamp '2023-12-31', date '2024-01-01' + time '10:30', current_date - current_date, now() >= timestamptz '2020-01-01'
select timestamptz '2024-07-01 12:00:00+02' at time zone 'America/New_York', timestamp '2024-07-01 12:00:00' at time zone 'Europe/Berlin', date_trunc('day', timestamptz '2024-07-01 23:30:00+00')
select count(*) from orders where day >= '2023-03-01' and day < date '2023-03-01' + interval '1 month'
select extract(year from day) y, extract('quarter' from day) q, sum(amount) from orders group by 1, 2 order by 1, 2
select day, count(*) over (order by day range between interval '1' month preceding and interval '1' month following) from orders order by 1 limit 5
select rowid, id from orders where rowid between 2 and 4
select id, status from orders order by case when status = 'late' then 0 else 1 end, status nulls last, id desc limit 8
select sum(amount) as total, total * 2 as twice, round(total / count(*), 2) from orders
select customer, sum(amount) s, s > 60 as big from orders group by customer having s > 40 order by s desc
select id % 3 as g, listagg(customer, ',' order by id desc) from orders where id < 9 group by g order by g
select customer, count_if(status = 'paid'), sum(amount) filter (status = 'paid'), max(day) - min(day) from orders group by 1 order by 1
select try(1 / 0), try('x'::int), try(list_extract([1], 5)), error('x') is null where false
prepare q as select count(*) from orders where customer = $1 and amount > $2; execute q('c1', 3)
set variable cutoff = date '2023-06-01'; select count(*) from orders where day > getvariable('cutoff')
begin; delete from orders where id < 30; rollback; select count(*) from orders
begin; update orders set amount = 0; commit; select sum(amount) from orders
create schema s; create table s.t (a int); insert into s.t values (1), (2); use s; select sum(a), current_schema() from t
create sequence seq start 10 increment 5; select nextval('seq') a union all select nextval('seq'); 
create table g (w int, h int, area int generated always as (w * h)); insert into g values (2, 3); select * from g
select sum(amount) from orders where customer = 'nope' group by customer
select sum(id), max(id), avg(id), count(*), list(id), string_agg(customer) from orders where false
select any_value(x), count(x), sum(x) from (select null::int as x from range(3))
select name, region, joined::date, joined::time, hour(joined), strftime(joined, '%H:%M'), joined + to_hours(5) from customers order by customer
select 'It''s', $$dollar 'q'$$, E'tab\there', "id" from orders limit 1
select id, sum(id) over (partition by id % 2 order by id desc rows between current row and unbounded following) from orders where id < 6 order by id
select id from orders where tags = [0, 1] or dims = {'w': 3, 'u': 'kg'} order by id
select dims, count(*) from orders group by dims order by dims limit 3
select tags, count(*) from orders group by tags order by tags nulls first
select max(tags), min(dims), arg_max(dims, amount) from orders
select distinct dims.u, len(tags) l from orders order by all
select json_extract(doc, ['$.a', '$.b[0]']), doc->'$.b[*]', doc->>'$.c' from orders order by id limit 2
select current_user, current_database(), current_schema(), version() is not null, typeof(1), typeof(1.5), typeof('a'), typeof([1]), typeof({'a': 1}), typeof(null), typeof(interval 1 day), typeof(now())
select hash(1) = hash(1), uuid() <> uuid(), random() between 0 and 1, typeof(uuid()), length(gen_random_uuid()::varchar)
select i, sum(new) over (order by i) as session from (select i, case when i - lag(i) over (order by i) <= 2 then 0 else 1 end as new from (values (1), (2), (6), (7), (12)) t(i)) order by i
select k, bool_and(v), bit_or(n), first(n), last(n order by n), min(n, 2), max(n, 2) from (values ('a', true, 1), ('a', false, 4), ('b', null, null)) t(k, v, n) group by k order by k
select region, max(case when status = 'paid' then amount end) as paid, max(amount) filter (status is null) as unknown from orders join customers using (customer) group by region order by region
select strftime(day, '%Y-W%V'), isoyear(day), weekofyear(day) from orders order by id limit 4
select coalesce(sum(x), 0) from (select 1 as x where false)
select i, i::varchar::int = i, format('{}', i), i::double / 3, (i / 3)::decimal(10, 4) from range(-2, 3) t(i)
create table a (id int, v varchar default 'none', made date default current_date, check (id > 0)); insert into a (id) values (1); insert into a by name select 2 as id, 'x' as v; select id, v, made = current_date from a order by id
select greatest(1, null, 3), least('b', 'a'), coalesce(null, 1), nullif(1, 1), ifnull(null, 'x'), if(true, 1, 2), 1 between 0 and 2, not null, 5 is distinct from null
select nullif(trim(' '), ''), regexp_full_match('2024-01-01', '\d{4}-\d\d-\d\d'), string_split_regex('a  b', ' +'), array_slice('hello', 2, 3), 'hello'[2:3], left('é€x', 2), bit_length('é'), strlen('é'), unicode('é'), chr(233)
select list_zip([1, 2], ['a', 'b', 'c']), flatten([[1], [2, 3], []]), list_slice([1, 2, 3, 4], 2, 3), [1, 2, 3, 4][2:], list_position([1, 2], 2), list_has_any([1], [1, 2])
select array_cross_product([1, 2, 3]::int[3], [3, 2, 1]::int[3]), array_cross_product([1, 2, 3]::float[3], [3, 2, 1]::int[3]), array_distance([1, 2]::tinyint[2], [3, 4]::double[2]), array_distance([1.5, 2]::decimal(5, 1)[2], [3, 4]::float[2])
select E'\u00e9', E'\x41', E'\101', E'\t|\n|\\|\'', E'\q', E'\xc3\xa9', length(E'\303\251')
select name || null, null || name, typeof(name || null), [1] || null, 'a' || null || name, name || null::varchar, typeof(name || null::varchar) from customers order by customer
select [1, 2, 3][:id], [1, 2, 3][: id - 1], customer[:id], [1, 2, 3][id:], [1, 2, 3][:-2], [1, 2, 3][-id:] from orders where id between 1 and 4
select case when range < 1 then 1 else 2 end, range from range(2)
create table r (range int, list int, map int); insert into r values (1, 2, 3); select range < 2, list < 3, range << 1, map < 4 from r where range < 4 and list<3
select range from range(5) where range<3 and range >= 1
