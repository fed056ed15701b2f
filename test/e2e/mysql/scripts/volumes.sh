# Changes what is on volumes of servers of MySQL, while none of them runs.
#
#     sh volumes.sh part A B     two servers go on with one database by themselves
#     sh volumes.sh foreign A    the volume holds another database
#     sh volumes.sh errant A     the server executes a transaction that no other one has
#     sh volumes.sh decay A      the server loses a table, and no other one knows
set -eu

# serve starts the server of a volume, which executes a statement, and ends it.
serve() {
	printf 'SET GLOBAL super_read_only = OFF;\n%s\n' "$2" >/tmp/init.sql
	: >/tmp/log
	mysqld --no-defaults --secure-file-priv=NULL --datadir="$1/data" --log-bin=binlog --relay-log=relay --gtid-mode=ON --enforce-gtid-consistency=ON \
		--persisted-globals-load=OFF --skip-networking --mysqlx=OFF --lower-case-table-names=0 --init-file=/tmp/init.sql \
		--socket=/tmp/mysqld.sock --pid-file=/tmp/mysqld.pid --tmpdir=/tmp --plugin-load-add=group_replication.so \
		--loose-group-replication-start-on-boot=OFF >/tmp/log 2>&1 &
	server=$!
	timeout 60 sh -c 'until grep -q "ready for connections" /tmp/log; do sleep 0.2; done' || {
		cat /tmp/log >&2
		exit 1
	}
	if grep 'ERROR' /tmp/log >&2; then exit 1; fi
	kill "$server"
	wait "$server"
}

case $1 in
part)
	serve "$2" "CREATE TABLE app.parted (volume VARCHAR(10) PRIMARY KEY) AS SELECT 'first' AS volume; CREATE TABLE app.further (n INT PRIMARY KEY);"
	serve "$3" "CREATE TABLE app.parted (volume VARCHAR(10) PRIMARY KEY) AS SELECT 'second' AS volume;"
	;;
foreign)
	rm -rf "$2/data"
	mysqld --no-defaults --secure-file-priv=NULL --initialize-insecure --datadir="$2/data" --lower-case-table-names=0 --tmpdir=/tmp >/tmp/log 2>&1 || {
		cat /tmp/log >&2
		exit 1
	}
	serve "$2" "CREATE DATABASE app; CREATE TABLE app.other (n INT PRIMARY KEY);"
	;;
errant)
	serve "$2" "CREATE DATABASE errant;"
	;;
decay)
	serve "$2" "SET SESSION sql_log_bin = OFF; DROP TABLE app.ledger;"
	;;
*)
	echo "cannot change volumes: $1 is unknown" >&2
	exit 1
	;;
esac
