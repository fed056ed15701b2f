"""What ledger.py and duel.py share: statements that never hang, and a record of
those that were acknowledged, which is told over HTTP to this pod alone."""
import collections
import http.server
import json
import math
import os
import socket
import threading
import time
import urllib.parse

import engines

RUN = os.environ["RUN"]
SECRET = os.environ.get("SECRET", "/etc/connection")


engine = engines.of(os.environ.get("ENGINE", "postgresql"))
Connection = engine.Connection


def secret(key):
    """Read each time: the kubelet brings changes of a Secret."""
    with open(os.path.join(SECRET, key)) as f:
        return f.read()


def cut():
    while True:
        time.sleep(0.05)
        with engines.lock:
            late = [c for c in engines.open_connections if (c.until or math.inf) < time.monotonic()]
        for c in late:
            try:
                c.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def settings(host):
    return {"host": host, "port": secret("port"), "dbname": secret("dbname"), "user": secret("username"), "password": secret("password"),
            "sslmode": os.environ.get("SSLMODE", "require")}


class Record:
    """Of what was acknowledged. What a statement without an answer did is not
    known, and it is not counted."""

    def __init__(self, table):
        self.table, self.lock = table, threading.Lock()
        self.acks, self.connections, self.failures = [], 0, []
        self.numbered, self.duels = collections.deque(maxlen=200), []

    def connect(self, patience):
        return Connection(patience, **settings(secret("host")))

    def prepare(self):
        """Make the table, however long it takes until that is possible."""
        while True:
            try:
                c = self.connect(20)
                c.run("CREATE TABLE IF NOT EXISTS " + self.table + " (" + engine.NUMBERED + "run varchar(40), writer varchar(40), seq bigint, "
                      "at timestamp DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (run, writer, seq))")
                c.close()
                return
            except engines.errors as e:
                self.fail("table", e)
                time.sleep(0.5)

    def insert(self, connection, writer, seq):
        sent = time.monotonic()
        server, timeline, number = connection.insert("INSERT INTO " + self.table + " (run, writer, seq) VALUES (%s, %s, %s)", (RUN, writer, seq))
        ack = {"sent": sent, "at": time.monotonic(), "writer": writer, "seq": seq, "server": server, "timeline": timeline}
        with self.lock:
            self.acks.append(ack)
            if number is not None:
                self.order(ack, number)

    def order(self, ack, number):
        """A server that takes a row has all that were acknowledged before it was sent."""
        for other, has in self.numbered:
            if other["at"] < ack["sent"] and has >= number:
                self.duels.append("%s took row %d of %s, sent %.2fs after %s had acknowledged row %d" % (
                    ack["server"], number, ack["writer"], ack["sent"] - other["at"], other["server"], has))
                break
        self.numbered.append((ack, number))

    def connected(self):
        with self.lock:
            self.connections += 1

    def fail(self, writer, e):
        failure = {"at": time.monotonic(), "writer": writer, "error": "%s: %s" % (type(e).__name__, " ".join(str(e).split()))}
        with self.lock:
            self.failures.append(failure)

    def rows(self):
        """All rows of this run, neighbours as ranges."""
        c = self.connect(60)
        try:
            rows = c.run("SELECT writer, min(seq), max(seq) FROM (SELECT writer, seq, seq - row_number() OVER (PARTITION BY writer ORDER BY seq) AS island "
                         "FROM " + self.table + " WHERE run = %s) AS r GROUP BY writer, island ORDER BY 1, 2", (RUN,))
        finally:
            c.close()
        return [{"writer": w, "first": first, "last": last} for w, first, last in rows]

    def answer(self, url):
        url = urllib.parse.urlparse(url)
        if url.path == "/rows":
            return {"rows": self.rows()}
        query = urllib.parse.parse_qs(url.query)
        begin, failed = (int(query.get(key, ["0"])[0]) for key in ("from", "failed"))
        with self.lock:
            told = {"now": time.monotonic(), "acknowledged": len(self.acks), "connections": self.connections,
                    "last": self.acks[-1]["at"] if self.acks else 0}
            if url.path == "/acks":
                told.update(acks=self.acks[begin:], failures=self.failures[failed:], duels=self.duels[:20])
        return told


def serve(record, port):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            try:
                status, told = 200, record.answer(self.path)
            except engines.errors as e:
                status, told = 503, {"error": "%s: %s" % (type(e).__name__, e)}
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    threading.Thread(target=cut, daemon=True).start()
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
