# The vote app: one static binary, built before this file is used (README.md says
# how). BASE may be scratch: nothing runs here while the image is built.
ARG BASE=gcr.io/distroless/static-debian12:nonroot
FROM ${BASE}

COPY vote /usr/local/bin/vote

USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/vote"]
