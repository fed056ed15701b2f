# Changes what is on volumes of servers, while none of them runs.
#
#     sh volumes.sh part A B     two servers go on with one database by themselves
#     sh volumes.sh foreign A    the volume holds another database
set -eu

cat >/tmp/postgresql.conf <<END
listen_addresses = ''
unix_socket_directories = '/tmp'
hba_file = '/tmp/pg_hba.conf'
ident_file = '/tmp/pg_ident.conf'
# A standby then needs no more connections than the primary had.
hot_standby = off
wal_level = replica
max_replication_slots = 64
shared_buffers = 16MB
# Left to the server that archives.
archive_mode = on
archive_command = 'false'
END
echo 'local all all trust' >/tmp/pg_hba.conf
: >/tmp/pg_ident.conf

start() {
	chmod 0700 "$1/pgdata"
	pg_ctl start --wait --timeout=60 --silent --pgdata="$1/pgdata" --log=/tmp/log --options="-c config_file=/tmp/postgresql.conf" || {
		cat /tmp/log >&2
		exit 1
	}
}

stop() { pg_ctl stop --wait --timeout=60 --silent --mode=fast --pgdata="$1/pgdata"; }

ask() { psql --no-psqlrc --quiet --host=/tmp --username=postgres --dbname=postgres --set=ON_ERROR_STOP=1 --command="$1"; }

# A server leads, or counts as started, a moment before it takes connections: without
# hot_standby it counts as started as soon as it recovers.
ready() { timeout 60 sh -c 'until pg_isready --quiet --host=/tmp; do sleep 0.1; done'; }

# promote the server of a volume where its log ends, and write there.
promote() {
	touch "$1/pgdata/standby.signal"
	start "$1"
	pg_ctl promote --wait --timeout=60 --silent --pgdata="$1/pgdata"
	ready
	ask "CREATE TABLE e2e_parted AS SELECT '$2' AS volume"
	stop "$1"
}

case $1 in
part)
	# The first one goes further before it begins a timeline.
	rm -f "$2/pgdata/standby.signal" "$2/pgdata/recovery.signal"
	start "$2"
	ready
	ask "CREATE TABLE e2e_further AS SELECT generate_series(1, 1000)"
	stop "$2"
	promote "$2" first
	promote "$3" second
	;;
foreign)
	rm -rf "$2/pgdata"
	initdb --pgdata="$2/pgdata" --username=postgres --auth=trust --data-checksums --encoding=UTF8 --locale=C.UTF-8 >/tmp/log 2>&1 || {
		cat /tmp/log >&2
		exit 1
	}
	# What no server has ever run with counts as no data.
	start "$2"
	ready
	stop "$2"
	;;
*)
	echo "cannot change volumes: $1 is unknown" >&2
	exit 1
	;;
esac
