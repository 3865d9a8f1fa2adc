-- What analysts type: each line is asked here and of DuckDB, those of several statements in a database of their own; `!` makes the tables.
!create table orders as select i as id, 'c' || (i % 7) as customer, date '2023-01-01' + (i * 3 % 400)::int as day, (i * 37 % 101)::decimal(10,2) / 4 as amount, case i % 5 when 0 then 'paid' when 1 then 'open' when 2 then null else 'late' end as status, [i % 3, i % 4, null][1: i % 4] as tags, {'w': i % 10, 'u': 'kg'} as dims, '{"a": ' || (i % 4) || ', "b": ["x", "y' || i || '"], "c": {"d": null}}' as doc from range(60) r(i)
!create table customers as select 'c' || i as customer, ['Ann', 'Bob', null, 'Zoë', 'Émile', 'bob', ''][i + 1] as name, case when i % 2 = 0 then 'EU' else 'US' end as region, timestamp '2022-01-01 10:00:00' + i * interval '37 hours 5 minutes' as joined from range(7) r(i)
!create table ev as select i as id, (i * 7919 % 23)::int as u, timestamp '2024-01-01' + (i * 317) * interval '1 minute' as ts, case when i % 11 = 0 then null else ['view', 'click', 'buy'][i % 3 + 1] end as kind, case when i % 7 = 0 then null else (i % 13) * 1.25 end as v, {'os': ['ios', 'web', null][i % 3 + 1], 'tags': list_value(i % 2, i % 5)} as meta from range(200) r(i)
!create table emp (id int, name varchar, boss int, dept varchar, pay decimal(10,2), hired date)
!insert into emp values (1,'Ada',null,'X',100.5,'2010-01-01'),(2,'Bo',1,'X',80,'2012-02-29'),(3,'Cy',1,'Y',80,'2013-05-05'),(4,'Di',2,'Y',null,'2020-12-31'),(5,'Ed',2,null,55.25,'2021-07-01'),(6,'Fy',4,'Z',0,null)
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
select u, count(*) filter (kind = 'buy') * 1.0 / nullif(count(*) filter (kind = 'view'), 0) as rate from ev group by u order by rate desc nulls last, u limit 5
with f as (select u, min(ts) filter (kind = 'view') v, min(ts) filter (kind = 'buy') b from ev group by u) select count(*) as users, count(b) as buyers, avg(date_diff('hour', v, b)) filter (b > v) as hours from f
select date_trunc('week', ts)::date w, kind, count(*) n, sum(count(*)) over (partition by kind order by date_trunc('week', ts)::date) c from ev group by 1, 2 order by 1, 2 nulls first
with s as (select *, case when ts - lag(ts) over w > interval '2 days' or lag(ts) over w is null then 1 else 0 end as new from ev window w as (partition by u order by ts)) select u, sum(new) over (partition by u order by ts) as session, kind from s order by u, ts limit 20
select meta.os as os, list(distinct kind order by kind) as kinds, max(struct_pack(v := v, id := id)) from ev group by os order by os nulls first
select u, arg_max(kind, ts) as last_kind, arg_max(meta, ts).os as last_os, list(id order by ts desc)[:3] as last3 from ev group by u order by u limit 6
select kind, quantile_cont(v, [0.25, 0.5, 0.75]) as q, mad(v), stddev_pop(v), histogram(v)[1.25] from ev group by kind order by kind nulls last
select * from (select u, kind, v from ev) pivot (sum(v) as s, count(*) as n for kind in ('view', 'buy') group by u) order by u limit 5
unpivot (select id, v::double as v, u::double as u from ev where id < 4) on columns(* exclude id) order by all
select id, coalesce(v, avg(v) over (partition by kind)) as filled, v is null as was from ev where id < 30 order by id
select id, last_value(v ignore nulls) over (order by id rows between unbounded preceding and current row) as ff, first_value(v ignore nulls) over (order by id rows between current row and unbounded following) as bf from ev where id < 25 order by id
select ts::date as day, count(*) as n, avg(count(*)) over (order by ts::date rows between 6 preceding and current row) as ma7, rank() over (order by count(*) desc) as r from ev group by ts::date order by day limit 15
select dept, name, pay, pay - avg(pay) over (partition by dept) as diff, percent_rank() over (partition by dept order by pay), dense_rank() over (order by pay desc nulls last) from emp order by id
with recursive up as (select id, name, boss, 1 as lvl, name as path from emp where boss is null union all select e.id, e.name, e.boss, lvl + 1, path || ' > ' || e.name from emp e join up on e.boss = up.id) select lvl, path, (select count(*) from emp x where x.boss = up.id) as reports from up order by path
select e.name, b.name as boss, e.pay > b.pay as more from emp e left join emp b on e.boss = b.id order by e.id
select dept, string_agg(name, ', ' order by pay desc nulls last, name) as names, sum(pay) as total, round(sum(pay) * 100 / sum(sum(pay)) over (), 2) as pct from emp group by dept order by dept nulls first
select name from emp where pay > (select avg(pay) from emp e2 where e2.dept = emp.dept) order by 1
select name from emp e where not exists (select 1 from emp where boss = e.id) and dept in (select dept from emp group by dept having count(*) > 1) order by name
select name, hired, age(date '2024-03-01', hired), date_diff('year', hired, date '2024-03-01'), hired + interval 1 year, strftime(hired, '%d.%m.%y'), hired::timestamp + interval '1' hour, dayname(hired) from emp order by id
select generate_series as m, count(id) from generate_series(date '2012-01-01', date '2013-06-01', interval 3 month) left join emp on hired >= generate_series and hired < generate_series + interval 3 month group by m order by m
select d::date as d, coalesce(n, 0) as n from range(timestamp '2024-01-01', timestamp '2024-01-08', interval 1 day) t(d) left join (select ts::date as x, count(*) n from ev group by 1) e on e.x = d::date order by d
select name, case when pay is null then 'none' when pay >= 100 then 'high' else 'low' end as band, pay::varchar, format('{:.1f}', pay::double), lpad(pay::int::varchar, 5, '0'), pay::int % 7 from emp order by id
update emp set pay = pay * 1.1 where dept = 'X' returning id, pay
update emp set pay = case when pay is null then 1 else pay + 1 end, name = upper(name); from emp order by id
update emp e set boss = b.id from emp b where b.name = 'Ada' and e.boss = 2; select id, boss from emp order by id
delete from emp where hired is null or pay < (select avg(pay) from emp); select id from emp order by id
create table tgt (id int primary key, v varchar, n int default 1); insert into tgt values (1, 'a', 1), (2, 'b', 2); insert into tgt (id, v) values (2, 'bb'), (3, 'c') on conflict (id) do update set v = excluded.v || tgt.v, n = tgt.n + 10 where tgt.n < 5; from tgt order by id
create table tgt (id int primary key, v varchar); insert into tgt values (1, 'a'); insert into tgt select id, name from emp on conflict do nothing; select count(*), min(v), max(v) from tgt
create table tgt as select id, pay from emp; merge into tgt t using (select id, pay * 2 as p from emp where id <> 3 union all select 99, 9) s on t.id = s.id when matched and s.p is null then delete when matched then update set pay = s.p when not matched then insert (id, pay) values (s.id, s.p) when not matched by source then delete; from tgt order by id
create table k (a int, b int, unique (a, b)); insert into k values (1, 1), (1, 2); insert or ignore into k values (1, 1), (2, 1); insert into k values (1, 2) on conflict (a, b) do update set b = 77; from k order by all
create table g (id int, ts timestamp default '2020-01-01', tags varchar[], info struct(a int, b varchar), m map(varchar, int)); insert into g (id, tags, info, m) values (1, ['x', 'y'], {'a': 1, 'b': 'q'}, map {'k': 1}), (2, [], null, map {}); select *, info.b, m['k'], len(tags) from g order by id
create table g (j json); insert into g values ('{"a": [1, 2, {"b": null}], "c": "x"}'), ('[1]'), (null); select j->'a'->2->'b', j->>'$.a[0]', j->>'c', json_type(j), j->'$.a[#-1]', json_array_length(j->'a') from g
select j->>'name' as n, (j->'items')::json[] as i, list_transform((j->'items')::json[], lambda x: (x->>'p')::int) as p from (values ('{"name": "o1", "items": [{"p": 3}, {"p": 4}]}'::json)) v(j)
select n, unnest(from_json(j, '["INTEGER"]')) as x from (values (1, '[1, 2]'), (2, '[]'), (3, null)) v(n, j)
select json_extract_string(j, '$.user.id')::int as id, sum((j->>'$.v')::double) from (values ('{"user": {"id": 1}, "v": 1.5}'), ('{"user": {"id": 1}, "v": 2}'), ('{"user": {"id": 2}}')) v(j) group by 1 order by 1
select key, count(*), min(value::varchar) from (values ('{"a": 1, "b": 2}'::json), ('{"a": null}')) v(j), json_each(v.j) group by key order by key
select to_json(list(struct_pack(id, name) order by id)) from emp where id < 3
select split_part(e, '@', 2) as dom, count(*) from (values ('a@x.com'), ('b@y.org'), ('c@x.com'), (null), ('nope')) v(e) group by dom order by 2 desc, 1 nulls last
select list_sort(list_distinct(string_split(lower('the cat the dog'), ' '))), list_count(string_split('a b', ' ')), array_to_string(list_reverse(string_split('a/b/c', '/')), '.')
select word, count(*) from (select unnest(string_split(lower('to be or not to be'), ' ')) as word) group by word order by count(*) desc, word
select [{'k': 1, 'v': 'a'}, {'k': 2, 'v': 'b'}] as l, list_transform(l, lambda x: x.v || x.k), list_filter(l, lambda x: x.k > 1)[1].v, l[2].k, list_transform(l, lambda x, i: i * x.k)
select list_reduce([1, 2, 3], lambda acc, x: acc * 10 + x), list_reduce(['a', 'b'], lambda a, b: a || b, '>'), list_sum(list_transform(range(5), lambda x: x ** 2)), [x for x in range(10) if x % 3 = 0], list_any_value([null, 2]), list_unique([1, 1, null]), list_has_all([1, 2], [2])
select list_zip([1, 2], [3, 4]), list_resize([1], 3, 0), list_concat([1], [2], null), list_append([1], 2), list_where([1, 2, 3], [true, false, true]), list_select([5, 6, 7], [3, 1]), list_cosine_similarity([1.0, 0], [1, 1]), generate_subscripts([5, 6], 1)
select struct_extract(s, 'a'), s.b.c, s['b']['c'], struct_update(s, a := 5), s = {'a': 1, 'b': {'c': 'x'}}, s::json, s is null from (values ({'a': 1, 'b': {'c': 'x'}}), (null), ({'a': null, 'b': null})) v(s)
select map_from_entries(list((dept, pay) order by id)) from emp where dept is not null and id in (1, 3, 6)
select map([u, u + 100], [kind, 'z']) as m, map_keys(m), m[u], m[9999], map_extract(m, u), map_contains(m, u), cardinality(m) from ev order by id limit 3
select dept, map_from_entries(list_zip(list(name order by id), list(pay order by id)))['Bo'] from emp group by dept order by dept nulls last
select count(*) over (partition by u order by ts range between interval '3 days' preceding and interval '1 second' preceding) as prev3, min(v) over (order by id rows between 3 preceding and 1 preceding), max(v) over (partition by kind order by id rows between 1 following and unbounded following) from ev order by id limit 20
select id, sum(v) over (order by u groups between 1 preceding and current row exclude ties), array_agg(id) over (order by id rows between 1 preceding and 1 following), avg(v) over (order by v range between 2.5 preceding and 2.5 following) from ev where id < 25 order by id
select distinct on (u) u, id, ts from ev order by u, ts desc
select id, ntile(4) over (order by v nulls first, id), cume_dist() over (order by v), nth_value(id, 3) over (partition by kind order by id), lead(ts, 1, ts) over (partition by u order by ts) - ts from ev order by id limit 15
select * from ev asof join (select ts - interval '10 minutes' as at2, id as pid, u from ev where kind = 'view') p on ev.u = p.u and ev.ts >= p.at2 order by ev.id limit 8
select a.id, b.id from (select * from ev where id < 10) a left join (select * from ev where id < 20) b on a.u = b.u and b.ts > a.ts and b.ts <= a.ts + interval '1 day' order by all
select grouping_id(dept, id), dept, id, count(*) from emp group by grouping sets ((dept), (dept, id), ()) order by all
select year(hired) y, sum(pay) s from emp group by rollup (y) order by y nulls last
select case grouping(dept) when 1 then 'TOTAL' else coalesce(dept, '?') end as d, count(*) from emp group by rollup(dept) order by grouping(dept), d
from emp select dept, max(pay) as top group by dept having top > 50 order by top desc
select columns(lambda c: c like '%a%') from emp order by 1 limit 2
select count(columns(*)), sum(columns('pay|id')) from emp
select * replace (upper(name) as name) rename (dept as team) from emp order by id limit 2
select emp.* exclude (boss, hired), dept is null as nodept from emp order by id limit 3
(select name from emp where id < 3) union all (select dept from emp where id > 4) order by 1 nulls first
select id from emp intersect all select boss from emp order by 1
select 1 as a, 'x' as b union all by name select 'y' as b, 2.5 as a order by all
values (1, 'a'), (2, null) order by 1 desc
with t(a, b) as (values (1, 2), (3, 4)), u as materialized (select sum(a) s from t) select t.*, s from t, u order by a
select sum(x) from (select unnest([1, 2, 3]) as x), (select unnest([10, 20]) as y) where x * 10 > y
select x, y from (select unnest([1, 2]) as x), lateral (select x * 10 as y union all select x * 100) order by all
select (select max(v) from ev where ev.u = e.id) as m, e.id in (select u from ev) from emp e order by e.id
select any_value(name) filter (where pay > 60), bool_and(pay > 0), count(distinct dept), count(distinct (dept, boss)), sum(distinct pay), approx_count_distinct(dept) from emp
select max(hired) - min(hired), avg(pay)::decimal(10,2), sum(pay) / count(*), sum(pay)::double / count(pay), min(name), max((pay, name)) from emp
select name from emp order by pay desc nulls last, lower(name) limit 2 offset 1
select name, pay from emp order by all desc nulls last limit 3
select try_cast('1,5' as double), try_cast('2024-13-01' as date), cast(' 7 ' as int), '0x1F'::int, '1_000'::int, '12:30'::time + interval 45 minute, '2024-01-01T10:00:00Z'::timestamptz::varchar, 'infinity'::timestamp > now()::timestamp
select date '2024-03-10' - interval 1 month, date '2024-03-31' - interval 1 month, date_add(date '2024-01-31', interval 1 month), timestamp '2024-02-28 23:00' + interval '25 hours', interval '1 month' > interval '29 days', interval '1 day' = interval '24 hours', (interval '1 day 2 hours')::varchar, extract(epoch from interval '1 month')
select date_part('isodow', d), date_part('doy', d), week(d), quarter(d), last_day(d), monthname(d), d - date_trunc('year', d)::date, date_trunc('month', d) + interval '1 month' - interval '1 day' from (values (date '2023-12-31'), (date '2024-02-29'), (null)) v(d)
select strptime('2024-02-29T12:00:01.5', '%Y-%m-%dT%H:%M:%S.%g'), strptime('Jan 5, 2024', '%b %-d, %Y'), strftime(date '2024-01-05', '%-d/%-m/%y %A'), to_timestamp(1700000000.5)::varchar, epoch_us(timestamp '1970-01-02'), make_time(1, 2, 3.5), time '23:59:59' + interval 2 second
select table_schema, table_name, column_name from information_schema.columns where table_name = 'emp' and data_type like 'DEC%'
select distinct table_catalog, table_schema from information_schema.tables
select function_name, count(*) > 0 from duckdb_functions() where function_name in ('sum', 'lower') group by 1 order by 1
select constraint_type, constraint_text from duckdb_constraints() where table_name = 'tgt'
create table tgt (id int primary key, v varchar not null check (length(v) > 1)); select constraint_type, constraint_text, constraint_column_names from duckdb_constraints() where table_name = 'tgt' order by all
create view v1 as select dept, count(*) n from emp group by dept; select view_name, column_count from duckdb_views() where not internal
describe emp
create temp table tt as select * from emp where false; insert into tt select * from emp limit 2; select count(*) from tt
create table p as select * from emp; alter table p add column bonus decimal(5,1) default 1.5; alter table p drop column boss; alter table p alter column pay type double; alter table p rename column name to who; select * from p order by id limit 2
create table p (a int not null, b int default 5); insert into p values (1, default), (2, null); insert into p (a) select 7; select a, b, a + b from p order by a
create or replace macro add_vat(x, rate := 0.2) as x * (1 + rate); select add_vat(100), add_vat(pay, rate := 0.1) from emp order by id limit 2
create macro recent(n) as table select name, hired from emp order by hired desc nulls last limit n; from recent(2)
create sequence s2; create table q (id int default nextval('s2'), t text); insert into q (t) values ('a'), ('b'); insert into q (t) select name from emp where id < 3; select id, t from q order by id
begin transaction; insert into emp (id) values (100); select count(*) from emp; rollback; select count(*) from emp
select id, v, v > all (select v from ev e2 where e2.id < 3 and v is not null), v = some (select 1.25) from ev where id < 5 order by id
select sum(v) filter (kind = 'buy' and meta.os = 'ios'), count(*) filter (meta.tags[1] = 1), avg(len(meta.tags)), max(meta.os) from ev
select meta, count(*) from ev where meta.os is not null group by meta order by count(*) desc, meta limit 4
select id from ev where list_contains(meta.tags, 4) and meta.tags[-1] > 3 and kind <> 'buy' order by id limit 5
select bar(id, 0, 10, 10), format_bytes(123456789), to_base(255, 16), bin(5), hex(255), chr(65) || ascii('a'), nullif(sign(-2.5), -1), xor(5, 3), 5 & 6 | 1, 2 << 3, -7 // 2, -7 % 3, 7.5 % 2, 1 / 3, 10 ** -2 from range(1) r(id)
select round(0.5), round(1.5), round(-0.5), round(2.675, 2), round(2.675::double, 2), 1.1 + 2.2, 0.1::float + 0.2::float, 1e20::decimal(38,0), 99999999999999999999, 123456789012 * 1000000, 5::tinyint / 2::tinyint, sum(x) from (values (0.1), (0.2)) v(x)
select id, list_aggregate(list(v) over (order by id rows between 2 preceding and current row), 'max') from ev order by id limit 6
select u, count(*) as n from ev group by u having n >= 9 and max(v) is not null order by n desc, u
select kind, sum(v) as s from ev group by kind order by s desc limit 50%
select id % 2 = 0 as even, avg(v) as a from ev group by even order by even
select string_agg(distinct kind, '|' order by kind desc), group_concat(id, ',') from (select * from ev order by id limit 5)
select cast(row(1, 'a') as struct(x int, y varchar)).y, row(1, 2) < row(1, 3), (1, 'a') in ((1, 'a'), (2, 'b')), {'x': [1, null]}.x[2] is null
select * from (values (1, [1, 2]), (2, []), (3, null)) t(i, l), unnest(l) with ordinality as u(x, n)
select i, x from (values (1, [1, 2]), (2, []), (3, null)) t(i, l) left join lateral unnest(l) u(x) on true order by all
select unnest(l), unnest(m) from (values ([1, 2, 3], ['a'])) t(l, m)
select i, unnest(generate_series(1, i)) from range(4) t(i)
select struct_pack(id, name), struct_pack(emp.id, z := name), id from emp order by id
select id, generate_subscripts([5, 6, null], 1) from emp where id < 3 order by all
select regexp_split_to_table(name, 'y') from emp order by 1
select mad(x), mad(x) filter (x > 0) from (values (1.5::decimal(38, 2)), (-7.25), (null), (12.5)) v(x)
select name, s like name escape e, s not ilike name escape e from customers, (values ('a%b', '!'), ('bob', 'x'), (null, null)) t(s, e) order by all
select typeof(round(1.5, null)), round(amount, null), trunc(amount, null), round(id, null), tags[null], typeof(tags[null::int]) from orders order by id limit 3
set timezone = 'America/New_York'; select strftime(joined::timestamptz + interval 8 months, '%d.%m. %H:%M %z|%%z'), strftime('%z', timestamptz '1850-01-01 00:00:00+00') from customers order by customer
set timezone = 'Asia/Kolkata'; select strftime(x, '%z'), count(*) from (values (timestamptz '2024-01-01 00:00:00+00'), (null), ('2024-07-01 00:00:00+00')) t(x) group by all order by all
explain analyze update orders set status = 'late' where status is null; select status, count(*) from orders group by all order by all
with s as (select u, min(ts) filter (where kind = 'view') v, min(ts) filter (where kind = 'click') c, min(ts) filter (where kind = 'buy') b from ev group by u) select count(v), count(c) filter (where c > v), count(b) filter (where b > c and c > v), round(100.0 * count(b) / nullif(count(v), 0), 2) from s
select path, count(*) n from (select u, string_agg(coalesce(kind, '?'), '>' order by ts) path from ev group by u) group by path order by n desc, path limit 5
select kind, nxt, count(*) n, n / sum(n) over (partition by kind) as p from (select kind, lead(kind) over (partition by u order by ts) nxt from ev) group by kind, nxt order by all
with f as (select u, date_trunc('month', min(ts)) c from ev group by u) select c, date_diff('month', c, date_trunc('month', ts)) as m, count(distinct ev.u) from ev join f using (u) group by all order by all
with g as (select *, case when ts - lag(ts) over (partition by u order by ts) > interval 2 day then 1 else 0 end as n from ev), s as (select *, sum(n) over (partition by u order by ts rows unbounded preceding) sess from g) select u, sess, min(ts), max(ts), count(*), max(ts) - min(ts) as dur from s group by all order by all limit 20
select k, row_number() over (order by k nulls first, v) n from (select u as k, v from ev union all select id, amount from orders) qualify n % 7 = 0 order by n
select * from (pivot orders on status using sum(amount) group by customer) qualify row_number() over (order by paid desc nulls last, customer) <= 3 order by paid desc nulls last
with recursive t(x, y) as (select 1, 10 union all select x + 1, y - x from t where x < 6) select x, y, sum(y) over (order by x rows 2 preceding), y - lag(y, 1, 0) over (order by x) from t qualify x > 1 order by x
select id, (select sum(x) from unnest(tags) t(x)) s, (select list(x order by x) from unnest(tags) t(x)), (select count(*) from unnest(tags) t(x) where x = orders.dims.w) from orders order by id limit 9
select e.name, (select (select max(o.amount) from orders o where o.id % 7 = e.id and o.id > b.id) from emp b where b.id = e.boss limit 1), exists (from emp x where x.boss = e.id and x.pay is null) from emp e order by e.id
select distinct tags, dims.u from orders order by tags, 2
select tags from orders where id < 6 intersect select tags from orders where id > 6 order by tags
select status, customer, count(*), grouping(status, customer) from orders where id < 9 group by grouping sets ((status, customer), (status, customer), (status), ()) order by all
update orders set amount = s.total from (select customer, sum(amount) total from orders group by customer) s where orders.customer = s.customer and orders.id < 3 returning id, amount, amount > 100 as n
delete from orders using customers c where c.customer = orders.customer and c.region = 'EU' and orders.amount < (select avg(amount) from orders) returning id
