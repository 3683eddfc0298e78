#include "worker/doctor/network.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

constexpr int kTrips = 16;
constexpr timeval kWait = {.tv_sec = 2, .tv_usec = 0};  // for one byte

// A TCP socket that closes itself.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

absl::Status SocketError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

struct Endpoint {
  in_addr_t address;
  int port;
};

absl::StatusOr<Socket> Listen(const Endpoint& endpoint) {
  const std::string what =
      absl::StrCat("listening on ",
                   endpoint.address == INADDR_ANY ? "any address" : "127.0.0.1",
                   ", port ", endpoint.port);
  Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(endpoint.address);
  address.sin_port = htons(static_cast<uint16_t>(endpoint.port));
  if (listener.fd() < 0 ||
      setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) !=
          0 ||
      bind(listener.fd(), reinterpret_cast<sockaddr*>(&address),
           sizeof(address)) != 0 ||
      listen(listener.fd(), 1) != 0) {
    return SocketError(what);
  }
  return listener;
}

struct Connection {
  Socket near;
  Socket far;
};

absl::StatusOr<Connection> ConnectToOurselves() {
  ASSIGN_OR_RETURN(const Socket listener,
                   Listen({.address = INADDR_LOOPBACK, .port = 0}));
  sockaddr_in address = {};
  socklen_t bytes = sizeof(address);
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  Socket near(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (near.fd() < 0 || getsockname(listener.fd(), place, &bytes) != 0 ||
      setsockopt(near.fd(), SOL_SOCKET, SO_SNDTIMEO, &kWait, sizeof(kWait)) !=
          0 ||
      connect(near.fd(), place, bytes) != 0) {
    return SocketError("connecting to 127.0.0.1");
  }
  Socket far(accept(listener.fd(), nullptr, nullptr));
  if (far.fd() < 0) return SocketError("accepting on 127.0.0.1");
  const int on = 1;
  for (const int fd : {near.fd(), far.fd()}) {
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kWait, sizeof(kWait));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return Connection{std::move(near), std::move(far)};
}

std::vector<std::string> Resolve(const std::string& name) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  std::vector<std::string> addresses;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &first) != 0) return {};
  for (const addrinfo* info = first; info != nullptr; info = info->ai_next) {
    char text[INET6_ADDRSTRLEN];
    if (getnameinfo(info->ai_addr, info->ai_addrlen, text, sizeof(text),
                    nullptr, 0, NI_NUMERICHOST) == 0) {
      addresses.push_back(text);
    }
  }
  freeaddrinfo(first);
  return addresses;
}

bool IsLoopback(const std::string& address) {
  return absl::StartsWith(address, "127.") || address == "::1";
}

}  // namespace

Finding CheckPorts(int port) {
  for (const in_addr_t address : {INADDR_LOOPBACK, INADDR_ANY}) {
    const auto listener = Listen({.address = address, .port = port});
    if (listener.ok()) continue;
    return {.state = FindingState::kFail,
            .text = std::string(listener.status().message()),
            .advice = port == 0 ? "let this process use TCP sockets"
                                : "stop what listens there (troupe down ends a "
                                  "cluster), or choose another port"};
  }
  return {.text = absl::StrCat("can listen on loopback and on any address, ",
                               port == 0 ? "the kernel's choice of port"
                                         : absl::StrCat("port ", port))};
}

Finding JudgeHostName(const HostAddresses& host) {
  constexpr char kAdvice[] =
      "on one machine nothing needs it; on several, start workers with "
      "troupe-worker --address IP";
  if (host.addresses.empty()) {
    return {.state = FindingState::kWarn,
            .text = absl::StrCat(host.name, " does not resolve"),
            .advice = kAdvice};
  }
  const std::string text =
      absl::StrCat(host.name, " is ", absl::StrJoin(host.addresses, ", "));
  if (std::all_of(host.addresses.begin(), host.addresses.end(), IsLoopback)) {
    return {.state = FindingState::kWarn,
            .text = absl::StrCat(text, ", which only this machine can reach"),
            .advice = kAdvice};
  }
  return {.text = text};
}

Finding CheckHostName() {
  char name[256] = "localhost";
  gethostname(name, sizeof(name) - 1);
  return JudgeHostName({.name = name, .addresses = Resolve(name)});
}

absl::StatusOr<absl::Duration> LoopbackRoundTrip() {
  ASSIGN_OR_RETURN(const Connection connection, ConnectToOurselves());
  absl::Duration least = absl::InfiniteDuration();
  for (int i = 0; i < kTrips; ++i) {
    const char sent = static_cast<char>('a' + i);
    char there = 0, back = 0;
    const absl::Time start = SteadyNow();
    if (send(connection.near.fd(), &sent, 1, MSG_NOSIGNAL) != 1 ||
        recv(connection.far.fd(), &there, 1, 0) != 1 ||
        send(connection.far.fd(), &there, 1, MSG_NOSIGNAL) != 1 ||
        recv(connection.near.fd(), &back, 1, 0) != 1) {
      return SocketError("a byte over 127.0.0.1");
    }
    if (back != sent) return absl::DataLossError("127.0.0.1 changed a byte");
    least = std::min(least, SteadyNow() - start);
  }
  return least;
}

Finding CheckLoopback() {
  const absl::StatusOr<absl::Duration> trip = LoopbackRoundTrip();
  if (!trip.ok()) {
    return {.state = FindingState::kFail,
            .text = std::string(trip.status().message()),
            .advice =
                "bring the interface up (ip link set lo up) and let no "
                "firewall stop it"};
  }
  return {.text = absl::StrFormat("a byte there and back takes %.0f us",
                                  absl::ToDoubleMicroseconds(*trip))};
}

}  // namespace troupe
