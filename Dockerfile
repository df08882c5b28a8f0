# One image for every process; compose.yaml names the command of each.
FROM python:3.13-slim
WORKDIR /ledgerline
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
RUN useradd --system ledgerline && install -d -o ledgerline /data
USER ledgerline
ENV PYTHONUNBUFFERED=1 DATA_DIR=/data LOG_FORMAT=json
