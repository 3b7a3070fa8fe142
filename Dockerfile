# The contact form for Cloud Run, or any place that runs containers:
#   docker build -t contactform .

FROM golang:1.26 AS build
WORKDIR /src
# The modules have a layer of their own: they change less often than the code.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# CGO is off because the last image has no C library.
RUN CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags "-s -w" -o /out/contactform ./examples/contactform

# No shell and no package manager; root certificates, without which no store is reached.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/contactform /contactform
# By number: who forbids root can't look up names.
USER 65532:65532
# As a list, so that the program itself gets SIGTERM.
ENTRYPOINT ["/contactform"]
