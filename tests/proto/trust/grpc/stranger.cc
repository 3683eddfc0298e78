#include "tests/proto/trust/grpc/stranger.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "proto/trust/member_files.h"

namespace troupe {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

int ConnectTo(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to = {.sin_family = AF_INET,
                    .sin_port = htons(static_cast<uint16_t>(port)),
                    .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  CHECK(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0);
  const timeval patience = {.tv_sec = absl::ToInt64Seconds(kPatience)};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return fd;
}

}  // namespace

absl::Duration HungUpAfter(int port, const std::string& said) {
  const int fd = ConnectTo(port);
  const absl::Time start = absl::Now();
  CHECK(send(fd, said.data(), said.size(), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(said.size()));
  char bytes[1024];
  ssize_t count = 1;
  while (count > 0) count = recv(fd, bytes, sizeof(bytes), 0);
  const bool patience_over = count < 0 && errno == EAGAIN;
  close(fd);
  return patience_over ? absl::InfiniteDuration() : absl::Now() - start;
}

std::string AgreedVersion(const TlsStranger& stranger) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
      SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (stranger.version_max != 0) {
    SSL_CTX_set_max_proto_version(context.get(), stranger.version_max);
  }
  if (!stranger.shows.certificates.empty()) {
    const MemberFiles files = FilesOfMember(stranger.shows.certificates);
    CHECK(SSL_CTX_use_certificate_file(context.get(), files.certificate.c_str(),
                                       SSL_FILETYPE_PEM) == 1);
    CHECK(SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(),
                                      SSL_FILETYPE_PEM) == 1);
  }
  const unsigned char http2[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), http2, sizeof(http2));
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()),
                                                      &SSL_free);
  const int fd = ConnectTo(stranger.port);
  SSL_set_fd(ssl.get(), fd);
  std::string version;
  // A server of HTTP/2 speaks first: a SETTINGS frame.
  char byte = 0;
  if (SSL_connect(ssl.get()) == 1 &&
      (!stranger.reads_first || SSL_read(ssl.get(), &byte, 1) == 1)) {
    version = SSL_get_version(ssl.get());
  }
  close(fd);
  return version;
}

}  // namespace troupe
