# The sample shop's frontend: one static binary, built before this file is used
# (README.md says how). BASE may be scratch: nothing runs here while the image
# is built.
ARG BASE=gcr.io/distroless/static-debian12:nonroot
FROM ${BASE}

COPY frontend /usr/local/bin/frontend

USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/frontend"]
