# What backs up, verifies and restores PostgreSQL: our own image of the same
# major, which has pg_dump and pgBackRest, a server to throw away, and the user.
#
# BASE is that image. Its default is what `make images` calls it here.
ARG BASE=localhost/storeplane/postgresql:17
FROM ${BASE}

USER 26:26
EXPOSE 8432
ENTRYPOINT ["/usr/local/bin/backup"]
CMD []

COPY backup /usr/local/bin/backup
