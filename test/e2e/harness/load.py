"""Keeps asking a shop for what its customers ask, on a new connection for each
request and without ever trying one again, until told to stop by a line on
standard input. What was counted goes to standard output as JSON."""
import json
import sys
import threading
import time

ask = json.loads(sys.stdin.readline())
stop = threading.Event()
lock = threading.Lock()
began = time.time()
told = {"requests": 0, "failed": 0, "failures": [], "orders": [], "slowest": 0.0}
waiting = [ask["workers"]]


def once(session, method, path, body=None, key=None):
    headers = {"Connection": "close", "X-Session": session}
    if body:
        headers["Content-Type"] = "application/json"
    if key:
        headers["Idempotency-Key"] = key
    start = time.time()
    data, trouble = b"", None
    connection = dial(ask)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        if answer.status not in (200, 201):
            trouble = "%d %s" % (answer.status, data[:200].decode("utf-8", "replace"))
    except Exception as e:
        trouble = "%s: %s" % (type(e).__name__, e)
    finally:
        connection.close()
    with lock:
        told["requests"] += 1
        told["slowest"] = max(told["slowest"], time.time() - start)
        if trouble:
            told["failed"] += 1
            if len(told["failures"]) < 20:
                told["failures"].append("after %.1fs %s %s: %s" % (start - began, method, path, trouble))
        if told["requests"] >= ask["most"]:
            stop.set()
    return None if trouble else data


def work(number):
    session = "%s-worker-%03d" % (ask["session"], number)
    turn = 0
    while not stop.is_set():
        start = time.time()
        turn += 1
        if turn % 4 == 1:
            once(session, "GET", "/")
        elif turn % 4 == 2:
            once(session, "GET", "/api/products")
        elif turn % 4 == 3:
            once(session, "POST", "/api/cart", json.dumps({"productId": "mug"}))
        else:
            order = once(session, "POST", "/api/orders", key="%s-%08d" % (session, turn))
            if order:
                with lock:
                    told["orders"].append(json.loads(order)["id"])
        if turn == 1:
            with lock:
                waiting[0] -= 1
                if waiting[0] == 0:
                    print("started", flush=True)
        stop.wait(max(0, 1 / ask["rate"] - (time.time() - start)))


def listen():
    sys.stdin.readline()
    stop.set()


threading.Thread(target=listen, daemon=True).start()
workers = [threading.Thread(target=work, args=(n,)) for n in range(ask["workers"])]
for w in workers:
    w.start()
stop.wait(ask["seconds"])
stop.set()
for w in workers:
    w.join()
told["seconds"] = time.time() - began
print(json.dumps(told), flush=True)
