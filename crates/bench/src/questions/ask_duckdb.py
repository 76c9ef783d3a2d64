# Asks DuckDB a question about the events of Parquet files: a first time, and then again.
#
# Reads a JSON object with the files of `events` and `persons`, the `sql` of the question, the
# number of `threads` and of further `runs`, and whether to `drop` the file cache before the
# first time. The events are read from their files each time. The person of each distinct id
# is in a table in memory, with a number instead of its uuid.
import json, os, sys, time
import duckdb

given = json.load(sys.stdin)


def files(name):
    quoted = ("'" + path.replace("'", "''") + "'" for path in given[name])
    return f"read_parquet([{', '.join(quoted)}], union_by_name = true, hive_partitioning = false)"


def ask():
    begun = time.perf_counter()
    rows = db.execute(given["sql"]).fetchall()
    return (time.perf_counter() - begun) * 1e3, rows


db = duckdb.connect()
db.execute(f"SET threads = {int(given['threads'])}")
db.execute("SET parquet_metadata_cache = true")
db.execute(f"CREATE VIEW events AS SELECT * FROM {files('events')}")
db.execute(f"""CREATE TABLE people AS SELECT unnest(distinct_ids) AS distinct_id, person
    FROM (SELECT distinct_ids, row_number() OVER () AS person FROM {files('persons')})""")
if given["drop"]:
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as drop:
        drop.write("3")
first, rows = ask()
before = time.process_time()
warm = []
for _ in range(given["runs"]):
    took, again = ask()
    assert sorted(again) == sorted(rows), "an engine gave two answers"
    warm.append(took)
cpu = (time.process_time() - before) * 1e3 / given["runs"]
with open("/proc/self/status") as status:
    highest, = (line.split()[1] for line in status if line.startswith("VmHWM:"))
print(json.dumps({
    "timing": {"first": first, "warm": warm, "cpu": cpu, "memory": int(highest) * 1024},
    "rows": [[str(value) for value in row] for row in rows],
}))
