-- The days of TPC-H's seven years. A week begins every seventh day from January 1 on; days of the week count from Sunday = 1.
with days as (
    select unnest(generate_series(date '1992-01-01', date '1998-12-31', interval '1' day))::date as day
)
select
    (year(day) * 10000 + month(day) * 100 + day(day))::integer as d_datekey,
    strftime(day, '%B %-d, %Y') as d_date,
    dayname(day) as d_dayofweek,
    monthname(day) as d_month,
    year(day)::integer as d_year,
    (year(day) * 100 + month(day))::integer as d_yearmonthnum,
    strftime(day, '%b%Y') as d_yearmonth,
    (dayofweek(day) + 1)::integer as d_daynuminweek,
    day(day)::integer as d_daynuminmonth,
    dayofyear(day)::integer as d_daynuminyear,
    month(day)::integer as d_monthnuminyear,
    ((dayofyear(day) - 1) // 7 + 1)::integer as d_weeknuminyear,
    case
        when month(day) >= 11 then 'Christmas'
        when month(day) >= 9 then 'Fall'
        when month(day) >= 6 then 'Summer'
        when month(day) >= 3 then 'Spring'
        else 'Winter'
    end as d_sellingseason,
    dayofweek(day) = 6 as d_lastdayinweekfl,
    day = last_day(day) as d_lastdayinmonthfl,
    strftime(day, '%m-%d') in ('01-01', '07-04', '11-11', '12-25') as d_holidayfl,
    dayofweek(day) between 1 and 5 as d_weekdayfl
from days
order by day
