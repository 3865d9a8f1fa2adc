select i, s as name, "i" as "Q" from t where i > 1 and s is not null or not d < 2 group by all having count(*) > 0 order by i desc nulls first limit 3 offset 1
select distinct i from t
select distinct on (i, s) i, s from t order by i
select t.*, main.t.i, memory.main.t.s from main.t
select * exclude (i) from t
select * replace (i + 1 as i) from t
select * rename (i as j) from t
select count(*), sum(distinct i), string_agg(s, '|' order by i desc), count(i) filter (where i > 1) from t
select quantile_cont(i, 0.5), percentile_cont(0.5) within group (order by i desc), mode() within group (order by i) from t
select first(i ignore nulls), any_value(i) from t
select i, grouping(i) from t group by rollup (i)
select i, s, grouping_id(i, s) from t group by cube (i, s)
select i, s from t group by grouping sets ((i), (s), ())
select i from t union select n from u order by i limit 1
select i from t union all by name select n from u
select i from t intersect all select n from u
select i from t except select n from u
(select i from t) union all (values (1), (2))
values (1, 'a'), (2, null)
with c(x) as (select i from t), e as materialized (select 1 as y) select * from c, e
with c as not materialized (select i from t) select * from c
with recursive c as (select 1 as x) select * from c
with recursive c(x) as (select 1 union all select x + 1 from c where x < 3) select * from c
from t, u
from t join u on t.i = u.i
from t left join u using (i)
from t right join u on t.i < u.n
from t full join u using (i)
from t natural join u
from t cross join u
from t semi join u using (i)
from t anti join u on t.i = u.i
from t asof join u on t.i >= u.i
from t positional join u
from t join u join t as w on w.i = u.i on t.i = u.i
from (t join u using (i)) as j(a, b)
select l.z, x.* from t as x(a, b), lateral (select a + 1 as y) l(z)
select v.n from (values (1), (2)) as v(n)
from (select i from t) as x(y)
from range(3) as r(n), generate_series(1, 5, 2)
from range(2, 5)
from range(3) with ordinality
from unnest([1, 2])
from t tablesample 10%
from t tablesample reservoir (20 rows)
from t tablesample system (10 percent) repeatable (3)
select i from t using sample 3 rows
from t pivot (sum(i) for s in ('x', 'y'))
from t unpivot (v for k in (i, d))
select i from t qualify row_number() over (partition by s order by i) = 1
select sum(i) over w as a from t window w as (partition by s order by i rows between 1 preceding and current row exclude ties)
select sum(i) over (w order by i desc rows between current row and 1 following) as a from t window w as (partition by s), v as (w)
select count(*) over (order by d range between 1 preceding and 0.5 following exclude group) from t
select lag(i, 1, 0 respect nulls) over (order by i groups unbounded preceding), lead(i, 2, 7 ignore nulls) over (order by d), nth_value(i, 2) over (order by d) from t
select i from t for update
select i from t for share nowait
select i from t limit 10%
select i from t order by i fetch first 2 rows only
select i from t order by i fetch first 2 rows with ties
select i from t limit all
select i into x from t
select case i when 1 then 'a' else 'b' end, case when i > 1 then 2 end, if(i > 1, 1, 2) from t
select i in (1, 2), i not in (select n from u), (i, s) in (select i, 'x' from u), i between 1 and 2, i not between 1 and 2 from t
select i between symmetric 2 and 1 from t
select s like 'a%', s not like 'a', s ilike 'A%', s like 'a!%' escape '!', s similar to 'a.*', s ~ 'a', s !~ 'a', s glob 'a*' from t
select s like any ('a', 'b') from t
select i = any (select n from u), i <> all (select n from u), exists (select 1 from u where u.i = t.i) from t
select i = any ([1, 2]) from t
select cast(i as varchar), i::double, try_cast(s as integer), d::decimal(10, 2), date '2024-01-01', timestamp '2024-01-01 00:00:00'::date from t
select cast(s as timestamp(3)), s::varchar(4), s::char(3), i::integer[], i::integer[3], s::struct(a integer), s::map(varchar, integer), s::enum('a', 'b') from t
select s::timestamptz, s::time, s::blob, s::uuid, s::json, s::uhugeint from t
select interval '3' day, interval 3 month, interval '1 day 2 hours', interval (i) day, interval '1-2' year to month from t
select date '2024-01-01' + interval 1 day, extract(year from date '2024-01-01'), date_trunc('month', date '2024-01-01'), date_diff('day', date '2024-01-01', date '2024-02-01')
select timestamp '2024-01-01 00:00:00' at time zone 'UTC'
select current_date, current_timestamp, current_time, localtimestamp, today()
select i + 1, i - 1, i * 2, i / 2, i // 2, i % 2, i ** 2, -i, +i, ~i, i & 1, i | 1, xor(i, 1), i << 1, i >> 1, s || 'x' from t
select i <=> 1 from t
select i is null, i isnull, i notnull, i is true, i is not false, i is distinct from 2, i is not distinct from 2, i is unknown from t
select [1, 2], {'a': 1}, map {'a': 1}, [1, 2][1], [1, 2, 3][2:3:2], {'a': 1}.a, (1, 2), row(1, 2)
select map {'a': i}, map([1], [i])[1], map {1: s}[1] from t
select list_transform([i], lambda x: x + 1), list_filter([i], lambda x, j: x > j), [x + j for x, j in [i, 2] if x > 1] from t
select list_transform([1], x -> x + 1)
select columns('i'), columns(*), columns(lambda c: c like 'i') from t
select * like 'i%' from t
select s collate nocase from t
select 1e3, 1.5, .5, 1_000, 0x1f, 'a', e'a\n', $$a$$, x'ab', null, true, false
select trim(s), trim(both 'x' from s), ltrim(s), trim(leading from s), substring(s from 2 for 1), position('a' in s), overlay(s placing 'a' from 1 for 2) from t
select $1, $name, ?
select sum(i order by s), max(s, 2), arg_max(s, i), median(d) from t
select try(i), random(), unnest([1]), array_agg(i), s.a.b, t.i.j from t
select (select max(i) from t), (select 1 limit 1), array(select i from t)
select lpad(s, 3, 'x'), rpad(s, 3, 'x'), replace(s, 'a', 'b'), split_part(s, ',', 1), regexp_replace(s, 'a', 'b', 'g'), regexp_extract(s, '(a)', 1), regexp_matches(s, 'a', 'i'), strftime(date '2024-01-01', '%Y'), strptime('2024', '%Y'), make_date(2024, 1, 1), make_timestamp(2024, 1, 1, 0, 0, 0.0), epoch_ms(0), concat(s, 'a'), concat_ws(',', s, 'b'), round(d, 1), log(2, d), chr(65), greatest(i, 1), least(i, 1), coalesce(i, 1), nullif(i, 1) from t
select i from t group by i with rollup
select i from t group by distinct i
select all i from t
select distinct all i from t
select i from only t
select i from t order by all desc
select i from t order by i using >
select i: 42
select 42 as "a b"
pivot t on s using sum(i)
create table w as select 1 as x with no data
create table w (a integer primary key, b varchar not null, c decimal(3, 1) default null, unique (b))
create table w (a integer, b varchar, primary key (a, b))
create table w (a integer default 3, b integer check (b > 1), c integer references t (i), d integer generated always as (a + 1))
create or replace temp table w as select 1 as x
create table if not exists t as select 1 as x
create table w (x, y) as select 1, 2
create view w(x) as select 1
create or replace view w as select i from t
create index k on t (i)
create unique index k on t (i)
create unique index if not exists k on t using art (i desc, s)
create unique index k on t using art (i) where i > 1
create table w (a integer collate nocase, b integer null, c integer unique)
create table w (like t)
create sequence q start 3
create schema q
create type q as enum ('a')
create materialized view w as select 1
create table w as select 1 with data
create table w (a integer) with (x = 1)
create table w (a integer) partition by (a)
insert into t values (3, 'z', 1.0)
insert into t (i, s) select 1, 'a'
insert into t by name select 1 as i
insert or replace into t values (1, 'a', 1)
insert or ignore into t values (1, 'a', 1)
insert into t values (1, 'a', 1) on conflict do nothing
insert into t values (1, 'a', 1) on conflict (i) do update set s = 'q' where i > 1
insert into t values (1, 'a', 1) returning i
insert into t default values
insert into t values (default, 'a', 1)
with c as (select 1 as i, 'a' as s, 1.0 as d) insert into t select * from c
drop table if exists w
drop table t cascade
drop view if exists main.w restrict
drop table t, u
drop index k
drop schema q
describe t
describe select 1
describe formatted t
select interval '1.5 days', interval '1.5' day
create index k on t (i) include (s)
select chr(65 using utf8)
create temp table w (a integer not null)
select i <= 1, e'a\n', $$a$$, true, null, b'101', x'ab', get_bit('101'::bit, 1) from t
create table n (a int check (a > 1) default 3 not null, b int unique, c int null, primary key (a, b), unique (c), constraint k check (a > c), foreign key (a) references t (i))
insert or ignore into k values (1, 2)
insert or replace into k by name select 1 as a
insert into k as x (a) values (default) on conflict (a) do update set b = excluded.b + x.b where x.b > 1 returning a, b as c
insert into k default values
insert into k values (1, 2) on conflict do nothing
with q as (select 1 as one) update t as x set i = u.n, s = default from u join q on u.i = one where x.i = u.i returning x.i
update t set (i, d) = (1, 2.5) where d > 2
with q as (select 1 as one) delete from t as x using u, q where x.i = u.i and one = u.n returning *
truncate table t
alter table t add column if not exists e int default 3 not null
alter table if exists t drop column if exists d cascade
alter table if exists nope drop column d
alter table t rename column i to j
alter table t rename to z
alter table t alter column i set data type varchar using i || 'x'
alter table t alter i set default 3
alter table k alter b drop default
alter table t alter i set not null
alter table k alter a drop not null
alter table t add primary key (i)
alter view w rename to x
alter table t add column if not exists i int
from (describe t)
from (show tables)
from (show t)
with a as (show tables) from a
(desc u)
select column_name, min from (summarize t)
select column_name, max from (summarize select i from u)
from pragma_table_info('t')
pivot t on s in ('x', 'y') using sum(i) as a, max(d) group by d
select * from t pivot (sum(i) as a for s in ('x' as z, 'y') group by d) as p(k, l)
unpivot t on i, d into name n value v
from t unpivot include nulls (v for k in (i as j, d))
from t unpivot ((v, w) for k in ((i, d) as j)) as z
unpivot t on i as j, d
select t.i, u.n from t asof join u on t.i >= u.i
select * from t asof left join u using (i)
select * from t positional join u
with recursive r as (select i from t union all select i + 1 from r where i < 5) select i from r
with recursive r as (select i from t union select i + 1 from r where i < 5) select i from r
select '{"a":1}'::json -> 'a', '{"a":{"b":1}}' -> 'a' ->> 'b', (to_json(s) -> '$') = '"x"', json '[1]', json_extract('[1]', ['$[0]']), json_object('a', i) from t
select t.i, e.value from t, json_each(to_json([t.i])) e
merge into t as a using u as b on a.i = b.i and b.n > 1 when matched and a.s = 'x' then update set s = 'z', d = b.n when not matched by target then insert (i, s) values (b.i, default) when not matched by source then delete returning merge_action, i
merge into t using u using (i) when matched then do nothing when not matched then insert default values
with q as (select 1 as i) merge into t using q using (i) when matched then error 'i' || q.i when not matched then error
merge into t using (select i, 'q' as s, 1.5 as d from u) v using (i) when matched then update by name when not matched then insert by name
merge into t using t as v on t.i = v.i when matched then update when not matched then insert *
create table z (a int, b int generated always as (a + 1) virtual, c as (b * 2))
select try(i // 0), try(s::int) from t
select s::nothing from t
select current_date = current_date, localtimestamp = localtimestamp, localtime = localtime, current_timestamp = current_timestamp, current_schema(), current_user = current_user from t
select s::m, [i]::integer[], {'a': i}::struct(a bigint), map {i: s}::map(bigint, varchar) from t where i = 1
