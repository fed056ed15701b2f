# The sample shop's backend as a company has it whose claims name no migration:
# each pod migrates the database before it serves.
ARG BASE=scratch
FROM ${BASE}

COPY backend /usr/local/bin/backend

USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/backend"]
CMD ["start"]
