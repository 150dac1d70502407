# The image of the controller and of the webhook: docker build -t palisade-controller:0.1.0 .
FROM rust:1.95-slim AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p palisade-controller -p palisade-webhook

FROM debian:bookworm-slim
COPY --from=build /src/target/release/palisade-controller /src/target/release/palisade-webhook /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["palisade-controller"]
