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

import psycopg2

RUN = os.environ["RUN"]
SECRET = os.environ.get("SECRET", "/etc/connection")


def secret(key):
    """Read each time: the kubelet brings changes of a Secret."""
    with open(os.path.join(SECRET, key)) as f:
        return f.read()


class Doubtful(Exception):
    """The server answered, and warned that the answer is worth less."""


class Connection:
    """A connection on which each statement is a transaction, and ends within
    the patience. A frozen server's kernel still answers, so that no timeout of
    TCP or of libpq would end the wait: the socket is cut. A statement_timeout
    would be worse: a commit that waits for its replica is acknowledged when it
    is cancelled."""

    open, lock = set(), threading.Lock()

    def __init__(self, patience, dsn="", **settings):
        self.patience, self.until = patience, None
        self.pg = psycopg2.connect(dsn, connect_timeout=2, tcp_user_timeout=3000, keepalives_idle=2, keepalives_interval=1, keepalives_count=2,
                                   application_name="ledger", **settings)
        self.pg.autocommit = True
        self.socket = socket.socket(fileno=os.dup(self.pg.fileno()))
        with Connection.lock:
            Connection.open.add(self)

    def run(self, sql, values=()):
        self.until = time.monotonic() + self.patience
        try:
            with self.pg.cursor() as cursor:
                cursor.execute(sql, values)
                rows = cursor.fetchall() if cursor.description else []
        finally:
            self.until = None
        warnings = [n for n in self.pg.notices if n.startswith("WARNING")]
        del self.pg.notices[:]
        if warnings:
            raise Doubtful(warnings[0])
        return rows

    def close(self):
        with Connection.lock:
            Connection.open.discard(self)
        for each in (self.pg, self.socket):
            try:
                each.close()
            except (psycopg2.Error, OSError):
                pass


def cut():
    while True:
        time.sleep(0.05)
        with Connection.lock:
            late = [c for c in Connection.open if (c.until or math.inf) < time.monotonic()]
        for c in late:
            try:
                c.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Record:
    """Of what was acknowledged. What a statement without an answer did is not
    known, and it is not counted."""

    def __init__(self, table):
        self.table, self.lock = table, threading.Lock()
        self.acks, self.connections, self.failures = [], 0, collections.deque(maxlen=20)

    def connect(self, patience):
        return Connection(patience, host=secret("host"), port=secret("port"), dbname=secret("dbname"),
                          user=secret("username"), password=secret("password"), sslmode=os.environ.get("SSLMODE", "require"))

    def prepare(self):
        """Make the table, however long it takes until that is possible."""
        while True:
            try:
                c = self.connect(20)
                c.run("CREATE TABLE IF NOT EXISTS " + self.table + " (run text, writer text, seq bigint, "
                      "at timestamptz DEFAULT clock_timestamp(), PRIMARY KEY (run, writer, seq))")
                c.close()
                return
            except (psycopg2.Error, OSError, Doubtful) as e:
                self.fail("table", e)
                time.sleep(0.5)

    def insert(self, connection, writer, seq):
        sent = time.monotonic()
        rows = connection.run(
            "INSERT INTO " + self.table + " (run, writer, seq) VALUES (%s, %s, %s) RETURNING coalesce(host(inet_server_addr()), ''), "
            "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int", (RUN, writer, seq))
        ack = {"sent": sent, "at": time.monotonic(), "writer": writer, "seq": seq, "server": rows[0][0], "timeline": rows[0][1]}
        with self.lock:
            self.acks.append(ack)

    def connected(self):
        with self.lock:
            self.connections += 1

    def fail(self, writer, e):
        text = "%.1f %s: %s: %s" % (time.monotonic(), writer, type(e).__name__, " ".join(str(e).split()))
        with self.lock:
            self.failures.append(text)

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
        begin = int(urllib.parse.parse_qs(url.query).get("from", ["0"])[0])
        with self.lock:
            told = {"now": time.monotonic(), "acknowledged": len(self.acks), "connections": self.connections,
                    "last": self.acks[-1]["at"] if self.acks else 0}
            if url.path == "/acks":
                told.update(acks=self.acks[begin:], failures=list(self.failures))
        return told


def serve(record, port):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            try:
                status, told = 200, record.answer(self.path)
            except (psycopg2.Error, OSError, Doubtful) as e:
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
