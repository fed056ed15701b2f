"""Restores the newest backup of a repository to the end of its archive, beside all
that runs, and prints which rows of a ledger are there.

    python3 restored.py DATABASE RUN
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import psycopg2

CONFIG, HOME = "/etc/storeplane/repository/pgbackrest.conf", "/tmp/restored"
DATA = HOME + "/pgdata"

# What a standby may not have less of than the primary had, by its name in pg_control.
LIMITS = {"max_connections": "max_connections", "max_worker_processes": "max_worker_processes", "max_wal_senders": "max_wal_senders",
          "max_prepared_xacts": "max_prepared_transactions", "max_locks_per_xact": "max_locks_per_transaction"}


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("%s ended with %d: %s" % (command[0], done.returncode, done.stderr or done.stdout))
    return done.stdout


def newest():
    stanzas = json.loads(run("pgbackrest", "--config=" + CONFIG, "info", "--output=json"))
    backed_up = [s for s in stanzas if s.get("backup")]
    if not backed_up:
        sys.exit("the repository has no backup: %s" % [s.get("status") for s in stanzas])
    return max(backed_up, key=lambda s: s["backup"][-1]["timestamp"]["stop"])["name"]


def settings():
    lines = [line.split(":", 1) for line in run("pg_controldata", DATA).splitlines() if ":" in line]
    control = {name.strip().removesuffix(" setting"): value.strip() for name, value in lines}
    found = {parameter: control[name] for name, parameter in LIMITS.items()}
    found.update(hba_file=HOME + "/pg_hba.conf", ident_file=HOME + "/pg_ident.conf")
    return "".join("%s = '%s'\n" % each for each in found.items())


def start():
    for name, text in (("pg_hba.conf", "local all all trust\n"), ("pg_ident.conf", ""), ("postgresql.conf", settings())):
        with open(os.path.join(HOME, name), "w") as f:
            f.write(text)
    command = ["postgres", "-D", DATA]
    for setting in ("config_file=" + HOME + "/postgresql.conf", "listen_addresses=", "unix_socket_directories=" + HOME, "archive_mode=off",
                    "ssl=off", "fsync=off", "hot_standby=on", "primary_conninfo=", "primary_slot_name=", "synchronous_standby_names="):
        command += ["-c", setting]
    with open(HOME + "/log", "w") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def recovered(server, database):
    while server.poll() is None:
        try:
            connection = psycopg2.connect(host=HOME, user="postgres", dbname=database)
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_is_in_recovery()")
                if not cursor.fetchone()[0]:
                    return connection
            connection.close()
        except psycopg2.OperationalError:
            pass
        time.sleep(0.1)
    with open(HOME + "/log") as log:
        sys.exit("PostgreSQL ended: " + log.read()[-2000:])


def main(database, of):
    shutil.rmtree(HOME, ignore_errors=True)
    os.makedirs(DATA, 0o700)
    run("pgbackrest", "--config=" + CONFIG, "--stanza=" + newest(), "--pg1-path=" + DATA, "--process-max=2", "--type=default",
        "--target-timeline=latest", "restore")
    server = start()
    try:
        with recovered(server, database).cursor() as cursor:
            cursor.execute("SELECT writer, min(seq), max(seq) FROM (SELECT writer, seq, seq - row_number() OVER (PARTITION BY writer ORDER BY seq) "
                           "AS island FROM ledger WHERE run = %s) AS r GROUP BY writer, island", (of,))
            print(json.dumps([{"writer": w, "first": first, "last": last} for w, first, last in cursor.fetchall()]))
    finally:
        # At once: nothing of it is kept.
        server.send_signal(signal.SIGQUIT)
        server.wait()
        shutil.rmtree(HOME, ignore_errors=True)


main(*sys.argv[1:])
