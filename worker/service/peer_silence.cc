#include "worker/service/peer_silence.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

// What the connections to a peer say together.
struct Connections {
  uint64_t segments = 0;  // received
  bool waits = false;     // something sent is not acknowledged
};

std::string AddressText(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, text, sizeof(text));
  return text;
}

// Of the other end, as gRPC writes it; empty: no TCP over IP, or not connected.
std::string PeerOf(int fd) {
  sockaddr_storage storage = {};
  socklen_t bytes = sizeof(storage);
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (getpeername(fd, address, &bytes) != 0) return "";
  if (storage.ss_family == AF_INET) {
    sockaddr_in ipv4 = {};
    std::memcpy(&ipv4, &storage, sizeof(ipv4));
    return absl::StrCat("ipv4:", AddressText(AF_INET, &ipv4.sin_addr), ":",
                        ntohs(ipv4.sin_port));
  }
  if (storage.ss_family != AF_INET6) return "";
  sockaddr_in6 ipv6 = {};
  std::memcpy(&ipv6, &storage, sizeof(ipv6));
  constexpr size_t kMappedAt = 12;  // of an IPv4 address in such a one
  if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) {
    return absl::StrCat(
        "ipv4:", AddressText(AF_INET, ipv6.sin6_addr.s6_addr + kMappedAt), ":",
        ntohs(ipv6.sin6_port));
  }
  return absl::StrCat("ipv6:%5B", AddressText(AF_INET6, &ipv6.sin6_addr),
                      "%5D:", ntohs(ipv6.sin6_port));
}

void Add(int fd, Connections& all) {
  tcp_info info = {};
  socklen_t bytes = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return;
  all.segments += info.tcpi_segs_in;
  all.waits = all.waits || info.tcpi_unacked > 0;
}

Connections ConnectionsTo(const std::string& peer) {
  Connections all;
  std::error_code error;  // none where /proc is not there
  std::filesystem::directory_iterator files("/proc/self/fd", error);
  const std::filesystem::directory_iterator end;
  while (!error && files != end) {
    int fd = -1;
    if (absl::SimpleAtoi(files->path().filename().string(), &fd) &&
        PeerOf(fd) == peer) {
      Add(fd, all);
    }
    files.increment(error);
  }
  return all;
}

}  // namespace

PeerSilence::PeerSilence(std::string peer) : peer_(std::move(peer)) {}

absl::Duration PeerSilence::Look(int64_t now_ns) {
  const Connections now = ConnectionsTo(peer_);
  const bool answered = !now.waits || now.segments != segments_;
  segments_ = now.segments;
  if (answered) {
    silent_since_ns_.reset();
    return absl::ZeroDuration();
  }
  if (!silent_since_ns_.has_value()) silent_since_ns_ = now_ns;
  return absl::Nanoseconds(now_ns - *silent_since_ns_);
}

}  // namespace troupe
