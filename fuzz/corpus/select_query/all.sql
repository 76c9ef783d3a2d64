select * from events where event in ('a', 'b') limit 10;
