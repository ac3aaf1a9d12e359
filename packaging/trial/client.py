"""Asks for a URL again and again, on connections that are kept and on new ones, until its input ends; then says how many failed.

    client.py HOST PORT [PATH]
"""
import http.client
import select
import sys
import threading

host, port = sys.argv[1], int(sys.argv[2])
path = sys.argv[3] if len(sys.argv) > 3 else "/"
done = threading.Event()
asked, failed = [0, 0], []


def ask(kept):
    connection = http.client.HTTPConnection(host, port, timeout=10)
    while not done.wait(0.01):
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                failed.append(f"status {answer.status}")
        except OSError as error:
            failed.append(repr(error))
            connection.close()
        except http.client.HTTPException as error:
            failed.append(repr(error))
            connection.close()
        asked[kept] += 1
        if not kept:
            connection.close()


threads = [threading.Thread(target=ask, args=(kept,)) for kept in (0, 1)]
for thread in threads:
    thread.start()
select.select([sys.stdin], [], [])
done.set()
for thread in threads:
    thread.join()
print(f"{asked[1]} requests on kept connections and {asked[0]} on new ones: {len(failed)} failed {failed[:3]}")
sys.exit(1 if failed or not all(asked) else 0)
