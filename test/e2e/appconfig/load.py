"""Keeps looking at a vote and voting, on a new connection for each request and
without ever trying one again, until told to stop by a line on standard input.
What was counted goes to standard output as JSON. The receipt of a vote is signed
with a key of a Secret over the name of a poll in a ConfigMap: one that does not
fit the poll's own key is from a pod that has half of one configuration and half of
another."""
import hashlib
import hmac
import http.client
import json
import socket
import sys
import threading
import time

ask = json.loads(sys.stdin.readline())
keys = ask["keys"] or {}
stop = threading.Event()
lock = threading.Lock()
began = time.time()
told = {"requests": 0, "failed": 0, "failures": [], "torn": [], "polls": {}, "slowest": 0.0}
waiting = [ask["workers"]]
# The address of a Service does not change: names are not what is tested.
address = socket.gethostbyname(ask["host"])


def once(method, path, body=None):
    headers = {"Connection": "close"}
    if body:
        headers["Content-Type"] = "application/json"
    start = time.time()
    data, trouble = b"", None
    connection = http.client.HTTPConnection(address, ask["port"], timeout=10)
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
    return None if trouble else json.loads(data)


def check(vote):
    poll, key = vote["poll"], keys.get(vote["poll"])
    with lock:
        told["polls"][poll] = told["polls"].get(poll, 0) + 1
    if key is None:
        return
    want = hmac.new(key.encode(), (poll + "\n" + vote["option"]).encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(want, vote["receipt"]):
        with lock:
            if len(told["torn"]) < 20:
                told["torn"].append(poll)


def work():
    turn = 0
    while not stop.is_set():
        start = time.time()
        turn += 1
        if turn % 2:
            once("GET", "/poll")
        else:
            vote = once("POST", "/votes", json.dumps({"option": ask["option"]}))
            if vote:
                check(vote)
        if turn == 2:
            with lock:
                waiting[0] -= 1
                if waiting[0] == 0:
                    open(ask["marker"], "w").close()
        stop.wait(max(0, 1 / ask["rate"] - (time.time() - start)))


def listen():
    sys.stdin.readline()
    stop.set()


threading.Thread(target=listen, daemon=True).start()
workers = [threading.Thread(target=work) for n in range(ask["workers"])]
for w in workers:
    w.start()
stop.wait(ask["seconds"])
stop.set()
for w in workers:
    w.join()
told["seconds"] = time.time() - began
print(json.dumps(told), flush=True)
