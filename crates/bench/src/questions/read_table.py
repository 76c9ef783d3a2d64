# The files of the tables of a project, as other engines read them.
#
# Reads a JSON object with `events` and `persons`, the directories of both tables, and prints
# the files of each, the number of events, and the columns that every file of events has.
import json, sys
import duckdb
from deltalake import DeltaTable

given = json.load(sys.stdin)
# Paths, not addresses: DuckDB and ClickHouse read files of this machine.
files = {name: sorted(uri.removeprefix("file://") for uri in DeltaTable(given[name]).file_uris())
         for name in ["events", "persons"]}
db = duckdb.connect()
rows, = db.execute(
    "SELECT sum(num_rows)::BIGINT FROM parquet_file_metadata(?)", [files["events"]]).fetchone()
columns = db.execute(
    "SELECT name FROM parquet_schema(?) GROUP BY name HAVING count(DISTINCT file_name) = ?",
    [files["events"], len(files["events"])]).fetchall()
print(json.dumps({**files, "rows": rows, "columns": [name for name, in columns]}))
