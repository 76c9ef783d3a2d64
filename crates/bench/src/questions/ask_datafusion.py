# Opens Apache DataFusion in this process, for a question about the events of Parquet files,
# which `ask.py` then asks. The input is that of `ask_duckdb.py`.
import atexit, json, os, shutil, sys, tempfile
from datafusion import SessionConfig, SessionContext

given = json.load(sys.stdin)


def table(name):
    """A directory with links to the files of a table: a table has one location."""
    directory = tempfile.mkdtemp(prefix="datafusion-")
    atexit.register(shutil.rmtree, directory)
    for at, path in enumerate(given[name]):
        os.symlink(path, os.path.join(directory, f"{at}.parquet"))
    context.register_parquet(name, directory)


def ask():
    return context.sql(given["sql"]).collect()


def rows_of(answer):
    return [list(row.values()) for batch in answer for row in batch.to_pylist()]


settings = {
    "datafusion.execution.parquet.pushdown_filters": "true",
    "datafusion.execution.parquet.reorder_filters": "true",
}
context = SessionContext(SessionConfig(settings).with_target_partitions(int(given["threads"])))
table("events")
table("persons")
context.sql("""CREATE TABLE people AS SELECT unnest(distinct_ids) AS distinct_id, person
    FROM (SELECT distinct_ids, row_number() OVER () AS person FROM persons)""").collect()
