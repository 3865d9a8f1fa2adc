"""Connections to a server that runs elsewhere: `fuseline.connect("grpc://host:port")`.

`server_calls` speaks Flight SQL by pyarrow alone and gives errors their classes back; `remote_runner` stands in the place of the runner of a
connection: texts are carried out by the server, and the rows of a query are a table that is fetched whenever a plan of it runs, so that frames
over it have all of their methods.  May import everything below the command line.  Start reading at `remote_runner.py`.
"""
