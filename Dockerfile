# An image that has one file in it: the static binary. `docker build --tag evenkeel .`, and docs/containers.md says how it is run.
# `--target fake-backend` makes one of the backends of compose.yaml.
FROM rust:1.95-alpine AS build
# hadolint ignore=DL3018
RUN apk add --no-cache build-base linux-headers
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package evenkeel --package fake_backend \
 && strip target/release/evenkeel target/release/fake_backend \
 && mkdir /state

FROM scratch AS fake-backend
COPY --from=build /src/target/release/fake_backend /fake_backend
USER 10001:10001
ENTRYPOINT ["/fake_backend"]

FROM scratch AS evenkeel
COPY --from=build /src/target/release/evenkeel /evenkeel
COPY --from=build --chown=10001:10001 /state /var/lib/evenkeel
# The folder of the binary is where commands are looked for: `docker exec NAME evenkeel status`.
ENV PATH=/ STATE_DIRECTORY=/var/lib/evenkeel
USER 10001:10001
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s CMD ["/evenkeel", "healthcheck"]
ENTRYPOINT ["/evenkeel"]
CMD ["--config", "/etc/evenkeel/evenkeel.yaml"]
