"""Keeps a ledger: writers that number their rows and note each one that the
database acknowledged. All but the last connect by the primary's Service; the
last one by the Secret's uri."""
import os
import threading
import time

import written

# Seconds after which an answer is not waited for any more.
PATIENCE = 2

record = written.Record("ledger")


def by_uri():
    return written.Connection.by_uri(PATIENCE, written.secret("uri"))


def by_service():
    return record.connect(PATIENCE)


def write(writer, connect, rate):
    seq, connection = 0, None
    while True:
        turn = time.monotonic()
        seq += 1
        try:
            if connection is None:
                connection = connect()
                record.connected()
            record.insert(connection, writer, seq)
        except Exception as e:  # whatever it is, the writer goes on
            record.fail(writer, e)
            if connection is not None:
                connection.close()
                connection = None
        time.sleep(max(0.05, 1 / rate - (time.monotonic() - turn)))


def main():
    record.prepare()
    count, rate = int(os.environ["WRITERS"]), float(os.environ["RATE"])
    for n in range(count):
        last = n == count - 1
        threading.Thread(target=write, args=("uri" if last else "service-%d" % n, by_uri if last else by_service, rate), daemon=True).start()
        # Spread over a turn, so that a gap is seen as long as it is.
        time.sleep(1 / rate / count)


threading.Thread(target=main, daemon=True).start()
written.serve(record, 8081)
