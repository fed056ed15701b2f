"""Watches for a duel: asks every server itself, by its own name, to write a row
twice a second. No more than one may ever take them at a time. It waits for an
answer longer than any fault lasts: what a frozen server says once it wakes up is
what matters."""
import os
import threading
import time

import written

PATIENCE = 120

record = written.Record("duel")


def watch(number):
    host, seq, connection = os.environ["HOST"] % number, 0, None
    while True:
        seq += 1
        try:
            if connection is None:
                connection = written.Connection(PATIENCE, **written.settings(host))
                record.connected()
            record.insert(connection, str(number), seq)
        except Exception as e:  # whatever it is, the watch goes on
            if written.engine.is_replica(e):
                time.sleep(0.5)
                continue
            record.fail(host, e)
            if connection is not None:
                connection.close()
                connection = None
        time.sleep(0.5)


def main():
    record.prepare()
    for n in range(int(os.environ["SERVERS"])):
        threading.Thread(target=watch, args=(n,), daemon=True).start()


threading.Thread(target=main, daemon=True).start()
written.serve(record, 8082)
