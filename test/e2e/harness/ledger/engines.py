"""How the databases of each engine are spoken to: connections on which each statement
is a transaction and ends within the patience. A frozen server's kernel still answers, so
that no timeout of TCP would end the wait: the socket is cut."""
import contextlib
import os
import socket
import threading
import time
import urllib.parse

open_connections, lock = set(), threading.Lock()

# Seconds after which an attempt to connect is repeated. A Service without a server refuses each
# attempt by ICMP, of which the kernel sends a client six and then one per second
# (net.ipv4.icmp_ratelimit). TCP repeats an attempt without an answer only after a second, and a
# server may have been there for most of it.
ATTEMPT = 0.25


def reach(host, port):
    """Raises OSError if nothing accepts a connection at once."""
    socket.create_connection((host, int(port)), ATTEMPT).close()


class Doubtful(Exception):
    """The server answered, and warned that the answer is worth less."""


class Waiting:
    """A connection whose socket is cut once a statement has had its patience."""

    def __init__(self, patience, descriptor):
        self.patience, self.until = patience, None
        self.socket = socket.socket(fileno=os.dup(descriptor))
        with lock:
            open_connections.add(self)

    @contextlib.contextmanager
    def patient(self):
        self.until = time.monotonic() + self.patience
        try:
            yield
        finally:
            self.until = None

    def close(self):
        with lock:
            open_connections.discard(self)
        for each in (self.connection, self.socket):
            try:
                each.close()
            except errors:
                pass


class PostgreSQL:
    """A statement_timeout would be worse: a commit that waits for its replica is
    acknowledged when it is cancelled."""

    NUMBERED = ""

    def __init__(self):
        import psycopg2
        import psycopg2.errors
        import psycopg2.extensions
        global errors
        errors = (psycopg2.Error, OSError, Doubtful)
        self.read_only = psycopg2.errors.ReadOnlySqlTransaction

        class Connection(Waiting):
            def __init__(self, patience, dsn="", **settings):
                at = psycopg2.extensions.parse_dsn(psycopg2.extensions.make_dsn(dsn, **settings))
                reach(at["host"], at["port"])
                self.connection = psycopg2.connect(
                    dsn, connect_timeout=2, tcp_user_timeout=3000, keepalives_idle=2, keepalives_interval=1, keepalives_count=2,
                    application_name="ledger", **settings)
                self.connection.autocommit = True
                super().__init__(patience, self.connection.fileno())

            by_uri = classmethod(lambda cls, patience, uri: cls(patience, uri))

            def run(self, sql, values=()):
                with self.patient(), self.connection.cursor() as cursor:
                    cursor.execute(sql, values)
                    rows = cursor.fetchall() if cursor.description else []
                warnings = [n for n in self.connection.notices if n.startswith("WARNING")]
                del self.connection.notices[:]
                if warnings:
                    raise Doubtful(warnings[0])
                return rows

            def insert(self, sql, values):
                """The server, its timeline, and no order."""
                return *self.run(sql + " RETURNING coalesce(host(inet_server_addr()), ''), "
                                 "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int", values)[0], None

        self.Connection = Connection

    def is_replica(self, e):
        return isinstance(e, self.read_only)


class MySQL:
    """It has no timelines. Rows are numbered: a server that has an acknowledged row gives the
    next one a higher number."""

    NUMBERED = "id bigint AUTO_INCREMENT UNIQUE, "

    # That the server is read-only, has no group to commit with, or is not in its group.
    REPLICA = (1290, 1836, 3100, 3101)

    def __init__(self):
        import pymysql
        global errors
        errors = (pymysql.Error, OSError, Doubtful)
        self.error = pymysql.Error

        class Connection(Waiting):
            def __init__(self, patience, host, port, dbname, user, password, sslmode="require"):
                self.connection = pymysql.connect(
                    host=host, port=int(port), user=user, password=password, database=dbname, connect_timeout=ATTEMPT, autocommit=True,
                    # A frozen server accepts connections, too, and says nothing on them.
                    read_timeout=patience, write_timeout=patience,
                    ssl={"check_hostname": False} if sslmode == "require" else None)
                super().__init__(patience, self.connection._sock.fileno())
                self.server = self.run("SELECT @@hostname")[0][0]

            @classmethod
            def by_uri(cls, patience, uri):
                u = urllib.parse.urlparse(uri)
                return cls(patience, u.hostname, u.port, u.path.lstrip("/"), u.username, urllib.parse.unquote(u.password))

            def run(self, sql, values=()):
                with self.patient(), self.connection.cursor() as cursor:
                    cursor.execute(sql, values or None)
                    return cursor.fetchall() if cursor.description else []

            def insert(self, sql, values):
                """The server, no timeline, and the number of the row."""
                with self.patient(), self.connection.cursor() as cursor:
                    cursor.execute(sql, values)
                    return self.server, 0, cursor.lastrowid

        self.Connection = Connection

    def is_replica(self, e):
        return isinstance(e, self.error) and e.args and e.args[0] in self.REPLICA


def of(name):
    return {"postgresql": PostgreSQL, "mysql": MySQL}[name]()
