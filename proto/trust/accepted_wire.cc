#include "proto/trust/accepted_wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "proto/trust/member_files.h"
#include "proto/trust/openssl.h"
#include "proto/trust/peer_role.h"
#include "proto/trust/refused_peers.h"

namespace troupe {
namespace {

using OwnedContext = std::unique_ptr<SSL_CTX, OpenSslFree<SSL_CTX_free>>;
using OwnedSsl = std::unique_ptr<SSL, OpenSslFree<SSL_free>>;

class Plain final : public AcceptedWire {
 public:
  explicit Plain(int socket) : AcceptedWire(socket) {}

  ssize_t Read(char* bytes, size_t size) override {
    set_events(POLLIN);
    return Outcome(recv(socket(), bytes, size, MSG_DONTWAIT));
  }
  ssize_t Write(const char* bytes, size_t size) override {
    set_events(POLLOUT);
    return Outcome(send(socket(), bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL));
  }

 private:
  static ssize_t Outcome(ssize_t count) {
    if (count > 0) return count;
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? kLater : kOver;
  }
};

class Encrypted final : public AcceptedWire {
 public:
  Encrypted(int socket, OwnedSsl ssl)
      : AcceptedWire(socket), ssl_(std::move(ssl)) {}
  ~Encrypted() override {
    if (!was_refused_ && !SSL_is_init_finished(ssl_.get())) {
      Refuse("it did not finish its handshake of TLS");
    }
  }

  ssize_t Read(char* bytes, size_t size) override {
    size_t count = 0;
    return Outcome(SSL_read_ex(ssl_.get(), bytes, size, &count), count);
  }
  ssize_t Write(const char* bytes, size_t size) override {
    size_t count = 0;
    return Outcome(SSL_write_ex(ssl_.get(), bytes, size, &count), count);
  }
  void Finish() override {
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
    AcceptedWire::Finish();
  }

 private:
  ssize_t Outcome(int result, size_t count) {
    if (result == 1) return static_cast<ssize_t>(count);
    const int error = SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_SSL && !SSL_is_init_finished(ssl_.get())) {
      Refuse(Reason());
    }
    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      set_events(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT);
      return kLater;
    }
    return kOver;
  }

  static std::string Reason() {
    const unsigned long error = ERR_peek_last_error();
    if (ERR_GET_REASON(error) == SSL_R_HTTP_REQUEST) {
      return "it speaks HTTP without TLS; the address begins with https://";
    }
    const char* const reason = ERR_reason_error_string(error);
    return reason == nullptr ? "its handshake failed" : reason;
  }

  void Refuse(absl::string_view why) {
    was_refused_ = true;
    TellOfRefusedPeer(Door::kHttp, absl::StrCat(peer(), " over HTTPS: ", why));
  }

  const OwnedSsl ssl_;
  bool was_refused_ = false;  // before its handshake was done
};

// Another one after every change of the files, by whatever way.
std::string VersionOf(const MemberFiles& files) {
  std::string version;
  for (const std::string& path : {files.certificate, files.key}) {
    struct stat file = {};
    stat(path.c_str(), &file);
    absl::StrAppend(&version, file.st_dev, " ", file.st_ino, " ", file.st_size,
                    " ", file.st_ctim.tv_sec, " ", file.st_ctim.tv_nsec, "; ");
  }
  return version;
}

absl::StatusOr<OwnedContext> ContextWith(const std::string& certificates) {
  const MemberFiles files = FilesOfMember(certificates);
  OwnedContext context(SSL_CTX_new(TLS_server_method()));
  // Nobody is asked for the password of a key.
  if (context != nullptr) {
    SSL_CTX_set_default_passwd_cb_userdata(context.get(),
                                           const_cast<char*>(""));
  }
  if (context == nullptr ||
      SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_use_certificate_chain_file(context.get(),
                                         files.certificate.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(),
                                  SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return absl::FailedPreconditionError(
        OpenSslError(absl::StrCat("the certificate in ", certificates))
            .message());
  }
  // A write is tried again from where its bytes lie then.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

class OpenSslServer final : public TlsServer {
 public:
  explicit OpenSslServer(const std::string& certificates)
      : certificates_(certificates) {}

  std::unique_ptr<AcceptedWire> Accept(int socket) override {
    if (const absl::Status read = Read(); !read.ok()) {
      if (said_ != read.message()) {
        LogWarning(absl::StrCat(read.message(), "; the one before is shown"));
      }
      said_ = std::string(read.message());
    }
    OwnedSsl ssl(SSL_new(context_.get()));
    BIO* const bio = BIO_new_socket(socket, BIO_NOCLOSE);
    SSL_set_bio(ssl.get(), bio, bio);
    SSL_set_accept_state(ssl.get());
    return std::make_unique<Encrypted>(socket, std::move(ssl));
  }

  // The files, where they are not those that it has. Connections keep what they
  // began with.
  absl::Status Read() {
    std::string version = VersionOf(FilesOfMember(certificates_));
    if (version == version_) return absl::OkStatus();
    RETURN_IF_ERROR(
        CheckMemberFiles(certificates_, PeerRole::kScheduler, absl::Now()));
    ASSIGN_OR_RETURN(OwnedContext context, ContextWith(certificates_));
    // What was checked is what was read, or the next connection reads again.
    if (VersionOf(FilesOfMember(certificates_)) != version) {
      return absl::UnavailableError(
          absl::StrCat(certificates_, " changes as it is read"));
    }
    context_ = std::move(context);
    version_ = std::move(version);
    said_.clear();
    return absl::OkStatus();
  }

 private:
  const std::string certificates_;
  OwnedContext context_;
  std::string version_;  // of the files, as they were read
  std::string said_;     // of files that could not be used since
};

std::string PeerOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  char host[INET6_ADDRSTRLEN] = "?";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return host;
  }
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
    return absl::StrCat(host, ":", ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
  return absl::StrCat("[", host, "]:", ntohs(v6.sin6_port));
}

void SetNonBlocking(int socket) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

}  // namespace

AcceptedWire::AcceptedWire(int socket)
    : socket_(socket), peer_(PeerOf(socket)), events_(POLLIN) {
  SetNonBlocking(socket_);
}

AcceptedWire::~AcceptedWire() { close(socket_); }

void AcceptedWire::AwaitRead() { events_ = POLLIN; }

void AcceptedWire::Finish() {
  shutdown(socket_, SHUT_WR);
  char bytes[4096];
  for (int i = 0; i < 64; ++i) {
    if (recv(socket_, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0) break;
  }
}

std::unique_ptr<AcceptedWire> PlainWire(int socket) {
  return std::make_unique<Plain>(socket);
}

absl::StatusOr<std::unique_ptr<TlsServer>> TlsServer::Create(
    const std::string& certificates) {
  auto server = std::make_unique<OpenSslServer>(certificates);
  RETURN_IF_ERROR(server->Read());
  return std::unique_ptr<TlsServer>(std::move(server));
}

}  // namespace troupe
