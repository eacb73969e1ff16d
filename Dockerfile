# The scheduler as one static file that runs as nobody in particular, in an image with nothing else but the CAs that
# extenders' certificates are checked with. Its file system may be read-only, if /tmp is not: heap profiles pass through it.
#
#   docker build -t kube-scheduler-rs:0.1.0 --build-arg KUBE_SCHEDULER_COMMIT=$(git rev-parse HEAD) .
#   docker build -t myscheduler:0.1.0 --target myscheduler .      with the plugin of tests/examples/hint_node.rs
#
# There is no repository in the build, so the argument tells `kube-scheduler version` the commit. Without it the commit is unknown.
#
# `.ci/image` builds with the same command from the files that are copied here.
FROM docker.io/library/rust:1.95-bookworm AS source
# A C compiler for musl: the allocator and the cryptography have parts in C.
RUN apt-get update && apt-get install -y --no-install-recommends musl-tools && rustup target add x86_64-unknown-linux-musl
WORKDIR /src
COPY .cargo .cargo
COPY Cargo.toml Cargo.lock build.rs ./
COPY src src
COPY tests/examples tests/examples

FROM source AS build
ARG KUBE_SCHEDULER_COMMIT
RUN cargo build --release --locked --target x86_64-unknown-linux-musl --bin kube-scheduler

FROM source AS build-myscheduler
ARG KUBE_SCHEDULER_COMMIT
RUN cargo build --release --locked --target x86_64-unknown-linux-musl --example myscheduler

FROM scratch AS base
COPY --from=source /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# Manifests name the program without its folder, as they do for the image of Kubernetes itself.
ENV PATH=/usr/local/bin
USER 65532:65532
ENTRYPOINT ["kube-scheduler"]

FROM base AS myscheduler
COPY --from=build-myscheduler /src/target/x86_64-unknown-linux-musl/release/examples/myscheduler /usr/local/bin/kube-scheduler

# The last one is what is built when no target is named.
FROM base AS kube-scheduler
COPY --from=build /src/target/x86_64-unknown-linux-musl/release/kube-scheduler /usr/local/bin/kube-scheduler
