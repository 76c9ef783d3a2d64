# Opens ClickHouse in this process, for a question about the events of Parquet files, which
# `ask.py` then asks. The input is that of `ask_duckdb.py`.
import json, os, sys
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
    return query(given["sql"])


def rows_of(answer):
    return json.loads(str(answer))["data"]


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
