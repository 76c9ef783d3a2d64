# Follows the script of an engine, and asks its question: a first time, and then again.
#
# `ask` returns an answer, and `rows_of` reads it. Only asking is timed.
import os, time


def timed():
    begun = time.perf_counter()
    answer = ask()
    took = (time.perf_counter() - begun) * 1e3
    return took, rows_of(answer)


if given["drop"]:
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as drop:
        drop.write("3")
first, rows = timed()
before = time.process_time()
warm = []
for _ in range(given["runs"]):
    took, again = timed()
    assert sorted(again) == sorted(rows), "an engine gave two answers"
    warm.append(took)
cpu = (time.process_time() - before) * 1e3 / given["runs"]
with open("/proc/self/status") as status:
    highest, = (line.split()[1] for line in status if line.startswith("VmHWM:"))
print(json.dumps({
    "timing": {"first": first, "warm": warm, "cpu": cpu, "memory": int(highest) * 1024},
    "rows": [[str(value) for value in row] for row in rows],
}))
