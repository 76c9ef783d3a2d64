# Opens DuckDB for a question about the events of Parquet files, which `ask.py` then asks.
#
# Reads a JSON object with the files of `events` and `persons`, the `sql` of the question, the
# number of `threads` and of further `runs`, and whether to `drop` the file cache before the
# first time. The events are read from their files each time. The person of each distinct id
# is in a table in memory, with a number instead of its uuid.
import json, sys
import duckdb

given = json.load(sys.stdin)


def files(name):
    quoted = ("'" + path.replace("'", "''") + "'" for path in given[name])
    return f"read_parquet([{', '.join(quoted)}], union_by_name = true, hive_partitioning = false)"


def ask():
    return db.execute(given["sql"]).fetchall()


def rows_of(answer):
    return answer


db = duckdb.connect()
db.execute(f"SET threads = {int(given['threads'])}")
db.execute("SET enable_progress_bar = false")
db.execute("SET parquet_metadata_cache = true")
db.execute(f"CREATE VIEW events AS SELECT * FROM {files('events')}")
db.execute(f"""CREATE TABLE people AS SELECT unnest(distinct_ids) AS distinct_id, person
    FROM (SELECT distinct_ids, row_number() OVER () AS person FROM {files('persons')})""")
