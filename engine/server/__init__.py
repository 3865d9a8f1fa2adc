"""`fuseline serve`: a connection's queries over Arrow Flight SQL, for clients that others wrote.

`wire_format` reads and writes protobuf, `flight_sql_messages` has the protocol's messages.  `flight_service` is what gRPC calls: it finds
who calls (`logins`) and in which session (`client_sessions`), waits for a turn (`turns`) and answers by `client_statements`, `metadata_answers`
or `server_actions`.  Sessions and transactions have connections of their own, which see the same tables (`shared_tables`) and run only
what the server allows (`server_runner`).

The top floor beside the command line: may import everything below.  Start reading at `flight_service.py`.
"""
