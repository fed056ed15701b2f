# What backs up, verifies and restores MariaDB and MySQL: MariaDB's client, and
# its server to throw away.
#
# BASE is a Debian: trixie has MariaDB 11.8.
ARG BASE=debian:trixie-slim
FROM ${BASE}

# The user has a fixed number: files on a volume belong to numbers.
RUN set -eu; \
    groupadd --system --gid 10001 storeplane; \
    useradd --system --uid 10001 --gid 10001 --home-dir /tmp --no-create-home --shell /usr/sbin/nologin storeplane

# One layer, so that what is removed at its end is never shipped. Copyright
# files stay, their licences ask for that; setuid programs do not.
RUN set -eu; \
    export DEBIAN_FRONTEND=noninteractive; \
    printf '%s\n' 'path-exclude=/usr/share/doc/*' 'path-include=/usr/share/doc/*/copyright' \
        'path-exclude=/usr/share/man/*' 'path-exclude=/usr/share/info/*' 'path-exclude=/usr/share/locale/*' \
        > /etc/dpkg/dpkg.cfg.d/storeplane; \
    apt-get update; \
    apt-get install -y --no-install-recommends ca-certificates mariadb-client mariadb-server-core; \
    apt-get clean; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/log/*.log /var/log/apt \
        /usr/share/man /usr/share/info /usr/share/locale; \
    find /usr/share/doc -type f ! -name copyright -delete; \
    find /usr/share/doc -type l ! -name copyright -delete; \
    find /usr/share/doc -mindepth 1 -type d -empty -delete; \
    find / -xdev -type f -perm /6000 -exec chmod a-s {} +; \
    command -v mariadbd mariadb mariadb-dump mariadb-install-db

ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    HOME=/tmp
USER 10001:10001
WORKDIR /
ENTRYPOINT ["/usr/local/bin/backup"]

# Last, so that a change of our own program keeps the layers above.
COPY backup /usr/local/bin/backup
