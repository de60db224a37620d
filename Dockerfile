# The gateway in a container: `docker build -t memoriter .`
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY plugins ./plugins
RUN pip wheel --no-cache-dir --wheel-dir /wheels '.[postgres]'

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index /wheels/*.whl \
    && rm -rf /wheels \
    && useradd --create-home --uid 1000 memoriter \
    && install -d -o memoriter -g memoriter /notes /memory
USER 1000
ENV MEMORITER_WORKSPACE=/notes \
    MEMORITER_HOME=/memory \
    MEMORITER_RESIDENT__ENABLED=false
VOLUME ["/notes", "/memory"]
EXPOSE 8377
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8377/healthz', timeout=4)"]
# The port is published on the host's loopback address only; see docs/recipes.md.
CMD ["memoriter", "serve", "--host", "0.0.0.0"]
