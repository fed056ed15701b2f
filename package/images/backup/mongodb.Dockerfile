# What backs up, verifies and restores MongoDB and what speaks its protocol:
# MongoDB's own tools, and FerretDB as the server to throw away. All of them are
# static and built before this file is used.
ARG BASE=debian:trixie-slim
FROM ${BASE}

# The user has a fixed number: files on a volume belong to numbers. Of Debian
# only the certificates of public authorities are wanted, which stores and
# databases have theirs from.
RUN set -eu; \
    export DEBIAN_FRONTEND=noninteractive; \
    groupadd --system --gid 10001 storeplane; \
    useradd --system --uid 10001 --gid 10001 --home-dir /tmp --no-create-home --shell /usr/sbin/nologin storeplane; \
    printf '%s\n' 'path-exclude=/usr/share/doc/*' 'path-include=/usr/share/doc/*/copyright' \
        'path-exclude=/usr/share/man/*' 'path-exclude=/usr/share/info/*' 'path-exclude=/usr/share/locale/*' \
        > /etc/dpkg/dpkg.cfg.d/storeplane; \
    apt-get update; \
    apt-get install -y --no-install-recommends ca-certificates; \
    apt-get clean; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/log/*.log /var/log/apt \
        /usr/share/man /usr/share/info /usr/share/locale; \
    find / -xdev -type f -perm /6000 -exec chmod a-s {} +

# FerretDB would tell its authors that it runs.
ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    HOME=/tmp \
    DO_NOT_TRACK=1
USER 10001:10001
WORKDIR /
ENTRYPOINT ["/usr/local/bin/backup"]

COPY ferretdb mongodump mongorestore /usr/local/bin/

# Last, so that a change of our own program keeps the layers above.
COPY backup /usr/local/bin/backup
