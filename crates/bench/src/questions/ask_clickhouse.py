# Asks ClickHouse, in this process, a question about the events of Parquet files: a first time,
# and then again. Input and output are those of `ask_duckdb.py`.
import json, os, sys, time
from chdb.session import Session

given = json.load(sys.stdin)


def files(name):
    """The files of a table. Their names have letters, digits, `-` and `_` alone."""
    top = os.path.commonpath([os.path.dirname(path) for path in given[name]])
    names = ",".join(os.path.relpath(path, top) for path in given[name])
    return "file('" + f"{top}/{{{names}}}".replace("'", "''") + "', 'Parquet')"


def query(sql):
    return session.query(sql, "JSONCompactStrings")


def ask():
    begun = time.perf_counter()
    found = query(given["sql"])
    took = (time.perf_counter() - begun) * 1e3
    return took, json.loads(str(found))["data"]


session = Session()
for statement in [
    "CREATE DATABASE bench ENGINE = Atomic",
    "USE bench",
    f"SET max_threads = {int(given['threads'])}",
    f"CREATE VIEW events AS SELECT * FROM {files('events')}",
    "CREATE TABLE people (distinct_id String, person UInt64) ENGINE = Join(ANY, LEFT, distinct_id)",
    f"""INSERT INTO people SELECT arrayJoin(ids), person FROM
        (SELECT distinct_ids AS ids, rowNumberInAllBlocks() + 1 AS person FROM {files('persons')})""",
]:
    query(statement)
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
    "rows": rows,
}))
