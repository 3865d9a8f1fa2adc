-- two words in turn
select count(*) as orders, sum(o_totalprice) as price
from orders
where regexp_matches(o_comment, '(special|pending).*(requests|deposits)');

-- a key taken out of a text
select regexp_extract(c_phone, '^[0-9]+') as country, count(*) as customers
from customer
group by country
order by country;

-- parts whose names have a colour and end in a vowel
select p_mfgr, count(*) as parts
from part
where regexp_matches(p_name, '(red|blue|green).*[aeiou]$')
group by p_mfgr
order by p_mfgr;

-- digits removed
select regexp_replace(p_container, '[AEIOU]', '', 'g') as container, count(*) as parts, avg(p_size) as size
from part
group by container
order by container;
