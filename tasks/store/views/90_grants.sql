-- Last, when everything is there. Functions are open to every role unless told otherwise.
revoke all on all functions in schema reel from public;
grant select on all tables in schema reel to reel_reader;
grant execute on all functions in schema reel to reel_reader;
