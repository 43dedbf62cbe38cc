# Both daemons and the tools; the command chooses: masakari-ng-api (default) or masakari-ng-engine.
FROM debian:12.11-slim AS python
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/*

FROM python AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY etc etc
COPY migrations migrations
COPY masakari_ng masakari_ng
RUN python3 -m venv /opt/masakari-ng \
    && /opt/masakari-ng/bin/pip install --no-cache-dir -c constraints.txt . \
    && /opt/masakari-ng/bin/pip uninstall -y pip

FROM python
# The uid that openstack-helm runs its containers with; any other works, too.
RUN groupadd --gid 42424 masakari \
    && useradd --uid 42424 --gid 42424 --no-log-init --no-create-home \
        --home-dir /var/lib/masakari --shell /usr/sbin/nologin masakari \
    && install -d -o masakari -g masakari /var/lib/masakari /var/log/masakari \
    && install -d /etc/masakari
COPY --from=build /opt/masakari-ng /opt/masakari-ng
COPY --chmod=755 etc/docker/masakari-ng-health /usr/local/bin/masakari-ng-health
ENV PATH=/opt/masakari-ng/bin:$PATH \
    MASAKARI_NG_ALIVE=/tmp/masakari-ng-engine.alive
USER 42424:42424
WORKDIR /var/lib/masakari
EXPOSE 15868
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["masakari-ng-health"]
CMD ["masakari-ng-api"]
