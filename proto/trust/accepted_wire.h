// A connection that was accepted, with TLS or without, read and written without
// waiting. Its owner polls its socket for events().
//
//   ASSIGN_OR_RETURN(auto tls, TlsServer::Create("DIR/trust/scheduler"));
//   std::unique_ptr<AcceptedWire> wire = tls->Accept(socket);   // or
//   PlainWire(socket)
#ifndef TROUPE_PROTO_TRUST_ACCEPTED_WIRE_H_
#define TROUPE_PROTO_TRUST_ACCEPTED_WIRE_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace troupe {

class AcceptedWire {
 public:
  // Closes the socket.
  virtual ~AcceptedWire();
  AcceptedWire(const AcceptedWire&) = delete;

  // Bytes, at least one; kLater: none now, poll for events(); kOver: the other
  // side is gone, or does not speak TLS.
  static constexpr ssize_t kLater = -1;
  static constexpr ssize_t kOver = 0;
  // With TLS a read of fewer than kReadBytes may leave some of a record, which
  // no poll tells of.
  static constexpr size_t kReadBytes = 16 << 10;
  virtual ssize_t Read(char* bytes, size_t size) = 0;
  virtual ssize_t Write(const char* bytes, size_t size) = 0;

  // Says that nothing more is sent, and drops what the other side still sends,
  // as far as it has come: to close before that could take the last words away
  // from it.
  virtual void Finish();

  int socket() const { return socket_; }
  // The address of the other side: "10.0.0.1:77", "[::1]:77"; "?" once it is
  // gone.
  const std::string& peer() const { return peer_; }
  // Of poll(2), after kLater; POLLIN at first, and after AwaitRead.
  short events() const { return events_; }
  void AwaitRead();

 protected:
  explicit AcceptedWire(int socket);
  void set_events(short events) { events_ = events; }

 private:
  const int socket_;
  const std::string peer_;
  short events_;
};

std::unique_ptr<AcceptedWire> PlainWire(int socket);

// TLS 1.3 as a server, with the certificate of a scheduler; clients show none.
// The handshake is done while the wire is read. A peer that does not come
// through it is a line in the log (refused_peers.h). A certificate and key that
// are exchanged are shown to the next connection; where CheckMemberFiles has
// something against them, the log says so, and those before are.
class TlsServer {
 public:
  // The errors of CheckMemberFiles; FailedPrecondition, with OpenSSL's words.
  static absl::StatusOr<std::unique_ptr<TlsServer>> Create(
      const std::string& certificates);
  virtual ~TlsServer() = default;
  // By one thread at a time.
  virtual std::unique_ptr<AcceptedWire> Accept(int socket) = 0;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_ACCEPTED_WIRE_H_
