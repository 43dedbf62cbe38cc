# Both daemons; the command chooses: masakari-ng-api (default) or masakari-ng-engine.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/masakari-ng \
    && /opt/masakari-ng/bin/pip install --no-cache-dir -c constraints.txt .

FROM python:3.11-slim-bookworm
RUN useradd --system --create-home --home-dir /var/lib/masakari masakari
COPY --from=build /opt/masakari-ng /opt/masakari-ng
ENV PATH=/opt/masakari-ng/bin:$PATH
USER masakari
WORKDIR /var/lib/masakari
EXPOSE 15868
CMD ["masakari-ng-api"]
